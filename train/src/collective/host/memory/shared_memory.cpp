#include "collective/host/memory/shared_memory.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {
namespace {

constexpr std::size_t kNoncePage = 4096;
constexpr std::size_t kNonceDigits = 32;  // hexadecimal
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr const char* kStartAnew = "Start the gang anew";

[[noreturn]] void refuse(const std::string& what, const std::string& why, const char* remedy) {
  throw Error(Failure{.kind = Failure::Kind::Unknown,
                      .message = fmt::format("{}: {}. {}", what, why, remedy)});
}
[[noreturn]] void fail(const std::string& what, int error, const char* remedy) {
  refuse(what, std::strerror(error), remedy);
}

/// In hexadecimal digits, since the rendezvous of the gang holds text that people may read.
std::string make_nonce() {
  std::array<unsigned char, kNonceDigits / 2> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    refuse("no shared memory for the ranks of this node", "OpenSSL has no random bytes",
           "Look at its configuration");
  }
  std::string text;
  for (auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// What a maker tells the other ranks.
struct Offer {
  int pid = 0;
  int descriptor = -1;
  std::size_t bytes = 0;
  std::string nonce;
};

std::string to_text(const Offer& offer) {
  return fmt::format("{} {} {} {}", offer.pid, offer.descriptor, offer.bytes, offer.nonce);
}

std::optional<Offer> from_text(const std::string& text) {
  Offer offer;
  std::array<char, kNonceDigits + 1> nonce{};
  static_assert(kNonceDigits == 32, "the width in the format below");
  if (std::sscanf(text.c_str(), "%d %d %zu %32s", &offer.pid, &offer.descriptor, &offer.bytes,
                  nonce.data()) != 4)
    return std::nullopt;
  offer.nonce = nonce.data();
  return offer.nonce.size() == kNonceDigits ? std::optional(offer) : std::nullopt;
}

std::string name_of_file(int descriptor) {
  std::array<char, PATH_MAX> target{};
  const auto length = ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), target.data(),
                                 target.size() - 1);
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length))
                    : "an unknown file";
}

/// Why an open file is not what was offered; none: it is.
std::optional<std::string> difference(int descriptor, const Offer& offer) {
  if (::fcntl(descriptor, F_GET_SEALS) != kSeals) return "it is no memory with a sealed size";
  struct stat status {};
  const auto bytes = kNoncePage + offer.bytes;
  if (::fstat(descriptor, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes)
    return fmt::format("it has {} bytes instead of {}", status.st_size, bytes);
  std::string nonce(kNonceDigits, '\0');
  if (::pread(descriptor, nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()) ||
      nonce != offer.nonce)
    return "it is another gang's, or of another call";
  return std::nullopt;
}

}  // namespace

SharedMemory::SharedMemory(Patience& patience, const std::string& key, std::size_t bytes, int maker)
    : bytes_(bytes) {
  try {
    if (patience.gang().rank() == maker)
      create(patience.gang(), key);
    else
      open(patience, key, maker);
  } catch (...) {
    close_descriptor();
    if (file_ != nullptr) ::munmap(file_, kNoncePage + bytes_);
    throw;
  }
}

SharedMemory::~SharedMemory() {
  ::munmap(file_, kNoncePage + bytes_);
  close_descriptor();
}

void SharedMemory::close_descriptor() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void SharedMemory::create(GangContext& gang, const std::string& key) {
  const auto what = fmt::format("no {} bytes of shared memory for the ranks of this node", bytes_);
  const auto nonce = make_nonce();
  fd_ = ::memfd_create("troupe-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) fail(what, errno, "Raise the limit of open files, or use fewer ranks");
  // fallocate: a machine without the memory says so here, not by SIGBUS at the first use.
  const auto whole = static_cast<off_t>(kNoncePage + bytes_);
  if (::ftruncate(fd_, whole) != 0 || ::fallocate(fd_, 0, 0, whole) != 0 ||
      ::fcntl(fd_, F_ADD_SEALS, kSeals) != 0) {
    fail(what, errno, "Use fewer ranks on the node, or smaller chunks or buckets");
  }
  map();
  std::memcpy(file_, nonce.data(), nonce.size());
  gang.rendezvous().set(
      key, to_text({.pid = ::getpid(), .descriptor = fd_, .bytes = bytes_, .nonce = nonce}));
}

void SharedMemory::open(Patience& patience, const std::string& key, int maker) {
  const auto text = patience.await(key, maker);
  const auto offer = from_text(text);
  const int rank = patience.gang().rank();
  if (!offer || offer->bytes != bytes_) {
    throw Error(Failure{
        .kind = Failure::Kind::Refused,
        .message = fmt::format("rank {} offers shared memory as \"{}\", and rank {} needs {} "
                               "bytes: every rank must give the communicator the same options",
                               maker, text, rank, bytes_)});
  }
  const auto what = fmt::format("rank {} cannot open the shared memory of rank {} (pid {})", rank,
                                maker, offer->pid);
  // Neither waits for a pipe nor takes over a terminal, if the number belongs to one by now.
  fd_ = ::open(fmt::format("/proc/{}/fd/{}", offer->pid, offer->descriptor).c_str(),
               O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0 && errno == ENOENT)
    refuse(what, fmt::format("rank {} has closed it, or has ended", maker), kStartAnew);
  if (fd_ < 0) {
    fail(what, errno,
         "The ranks of one node must run as one user, in one PID namespace, with /proc mounted");
  }
  if (auto why = difference(fd_, *offer)) {
    refuse(what,
           fmt::format("its descriptor {} is {} now, and {}", offer->descriptor, name_of_file(fd_),
                       *why),
           kStartAnew);
  }
  // The same file, not the same number.
  const int writable = ::open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDWR | O_CLOEXEC);
  if (writable < 0) fail(what, errno, "Raise the limit of open files, or use fewer ranks");
  close_descriptor();
  fd_ = writable;
  map();
}

void SharedMemory::map() {
  void* at = ::mmap(nullptr, kNoncePage + bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED)
    fail(fmt::format("cannot map {} bytes of shared memory", bytes_), errno, "Use smaller chunks");
  file_ = static_cast<std::byte*>(at);
  data_ = file_ + kNoncePage;
}

}  // namespace troupe::train
