#include "os/files/file_content.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/unique_fd.hpp"

namespace troupe::os {
namespace {

constexpr std::size_t kPiece = 1 << 18;

FileContent unread(int error) { return {.bytes = {}, .why_not = std::strerror(error)}; }

}  // namespace

FileContent read_file(const std::filesystem::path& file) {
  const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return in ? read_to_end(in.get()) : unread(errno);
}

FileContent read_regular_file(const std::filesystem::path& file, std::uint64_t most) {
  const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!in || ::fstat(in.get(), &status) != 0) return unread(errno);
  if (S_ISDIR(status.st_mode)) return unread(EISDIR);
  if (!S_ISREG(status.st_mode)) return {.bytes = {}, .why_not = "it is no file"};
  const FileContent too_large{.bytes = {},
                              .why_not = fmt::format("it has more than {} bytes", most)};
  if (static_cast<std::uint64_t>(status.st_size) > most) return too_large;
  auto content = read_to_end(in.get(), most);
  if (content.bytes.size() > most) return too_large;  // somebody still writes it
  return content;
}

FileContent read_to_end(int fd, std::uint64_t most) {
  FileContent content;
  struct stat status {};
  // What the size says may not be so: files of /proc have bytes and say that they have none.
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) <= most)
    content.bytes.reserve(static_cast<std::size_t>(status.st_size));
  std::vector<char> piece(kPiece);
  while (content.bytes.size() <= most) {
    const auto got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unread(errno);
    if (got == 0) break;
    content.bytes.append(piece.data(), static_cast<std::size_t>(got));
  }
  return content;
}

}  // namespace troupe::os
