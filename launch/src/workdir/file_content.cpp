#include "workdir/file_content.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "os/files/file_content.hpp"
#include "os/unique_fd.hpp"
#include "store/types.hpp"

namespace troupe::launch {
namespace {

/// Empty: a regular file.
std::string other_kind(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileContent unread(std::string why_not, bool is_missing = false) {
  return {.bytes = {}, .why_not = std::move(why_not), .is_missing = is_missing};
}

FileContent above(std::uint64_t most) {
  return unread(
      fmt::format("it holds more than {}, the most that a run carries: write what is larger into a "
                  "folder that the machines share",
                  store::format_bytes(most)));
}

}  // namespace

FileContent content_of(const std::string& file, std::uint64_t most) {
  // Else the opening of a pipe waits for somebody who writes.
  const os::UniqueFd in(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!in || ::fstat(in.get(), &status) != 0) return unread(std::strerror(errno), errno == ENOENT);
  if (const auto kind = other_kind(status.st_mode); !kind.empty())
    return unread(fmt::format("it is {}: give a regular file", kind));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > most) return above(most);
  auto [bytes, why_not] = os::read_to_end(in.get(), most);
  if (!why_not.empty()) return unread(std::move(why_not));
  if (bytes.size() > most) return above(most);  // somebody still writes it
  return {.bytes = std::move(bytes), .why_not = {}};
}

}  // namespace troupe::launch
