#include "os/files/read_write.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <unistd.h>

namespace troupe::os {
namespace {

// The system takes at most 2 GiB in one call.
constexpr std::uint64_t kMostBytesAtOnce = std::uint64_t{1} << 30;

[[noreturn]] void throw_errno() { throw std::system_error(errno, std::generic_category()); }

}  // namespace

void write_all(int fd, const void* bytes, std::size_t count) {
  const auto* next = static_cast<const char*>(bytes);
  while (count != 0) {
    const auto written = ::write(fd, next, std::min<std::uint64_t>(count, kMostBytesAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno();
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

std::uint64_t read_at(int fd, std::uint64_t at, void* into, std::uint64_t count) {
  auto* next = static_cast<char*>(into);
  std::uint64_t left = count;
  while (left != 0) {
    const auto got =
        ::pread(fd, next, std::min(left, kMostBytesAtOnce), static_cast<off_t>(at + count - left));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno();
    if (got == 0) break;
    next += got;
    left -= static_cast<std::uint64_t>(got);
  }
  return count - left;
}

}  // namespace troupe::os
