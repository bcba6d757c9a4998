#include "collective/shared_memory.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {
namespace {

[[noreturn]] void fail(const std::string& what, int error, const char* remedy) {
  throw Error(Failure{.kind = Failure::Kind::Unknown,
                      .message = fmt::format("{}: {}. {}", what, std::strerror(error), remedy)});
}

}  // namespace

SharedMemory::SharedMemory(Patience& patience, const std::string& key, std::size_t bytes, int maker) : bytes_(bytes) {
  try {
    if (patience.gang().rank() == maker)
      create(patience.gang(), key);
    else
      open(patience, key, maker);
    if (data_ == nullptr) map();
  } catch (...) {
    close_descriptor();
    throw;
  }
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  close_descriptor();
}

void SharedMemory::close_descriptor() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void SharedMemory::create(GangContext& gang, const std::string& key) {
  const auto what = fmt::format("no {} bytes of shared memory for the ranks of this node", bytes_);
  fd_ = ::memfd_create("troupe-collective", MFD_CLOEXEC);
  if (fd_ < 0) fail(what, errno, "Raise the limit of open files, or use fewer ranks");
  // fallocate: a machine without the memory says so here, not by SIGBUS at the first use.
  if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 || ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes_)) != 0) {
    fail(what, errno, "Use fewer ranks on the node, or smaller chunks or buckets");
  }
  map();
  gang.rendezvous().set(key, fmt::format("{} {} {}", ::getpid(), fd_, bytes_));
}

void SharedMemory::open(Patience& patience, const std::string& key, int maker) {
  const auto place = patience.await(key, maker);
  int pid = 0;
  int number = -1;
  std::size_t bytes = 0;
  if (std::sscanf(place.c_str(), "%d %d %zu", &pid, &number, &bytes) != 3 || bytes != bytes_) {
    throw Error(Failure{.kind = Failure::Kind::Refused,
                        .message = fmt::format(
                            "rank {} offers shared memory as \"{}\", and rank {} needs {} bytes: every rank must give "
                            "the communicator the same options",
                            maker, place, patience.gang().rank(), bytes_)});
  }
  const auto path = fmt::format("/proc/{}/fd/{}", pid, number);
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) {
    fail(fmt::format("rank {} cannot open the shared memory of rank {} (process {})", patience.gang().rank(), maker,
                     pid),
         errno, "The ranks of one node must run as one user, in one PID namespace, with /proc mounted");
  }
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || static_cast<std::size_t>(status.st_size) < bytes_) {
    fail(fmt::format("{} is not the shared memory of this gang", path), ESTALE, "Start the gang anew");
  }
}

void SharedMemory::map() {
  void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) fail(fmt::format("cannot map {} bytes of shared memory", bytes_), errno, "Use smaller chunks");
  data_ = static_cast<std::byte*>(at);
}

}  // namespace troupe::train
