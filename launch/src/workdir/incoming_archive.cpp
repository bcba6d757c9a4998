#include "workdir/incoming_archive.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "words/refuse.hpp"

namespace troupe::launch {

IncomingArchive::IncomingArchive(std::string file) : file_(std::move(file)) {
  const auto folder = std::filesystem::path(file_).parent_path();
  out_.reset(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (out_) return;
  partial_ = fmt::format("{}.partial-{}", file_, ::getpid());
  out_.reset(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out_) fail(errno);
}

IncomingArchive::~IncomingArchive() {
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void IncomingArchive::add(std::string_view piece) {
  while (!piece.empty()) {
    const auto wrote = ::write(out_.get(), piece.data(), piece.size());
    if (wrote < 0 && errno != EINTR) fail(errno);
    if (wrote > 0) piece.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void IncomingArchive::finish() {
  if (!partial_.empty()) {
    if (::rename(partial_.c_str(), file_.c_str()) != 0) fail(errno);
    partial_.clear();
    return;
  }
  const auto whole = fmt::format("/proc/self/fd/{}", out_.get());
  if (::linkat(AT_FDCWD, whole.c_str(), AT_FDCWD, file_.c_str(), AT_SYMLINK_FOLLOW) != 0 &&
      errno != EEXIST)
    fail(errno);
}

void IncomingArchive::fail(int error) const {
  refuse(fmt::format("the working directory cannot be written as '{}': {}", file_,
                     std::strerror(error)));
}

}  // namespace troupe::launch
