#include "run/files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "config/name.hpp"
#include "os/unique_fd.hpp"
#include "words/refuse.hpp"
#include "workdir/file_content.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// -> as errno has it; 0: all of it is written.
int write_into(const std::string& file, std::string_view content) {
  os::UniqueFd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out) return errno;
  while (!content.empty()) {
    const auto wrote = ::write(out.get(), content.data(), content.size());
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return ::close(out.release()) == 0 ? 0 : errno;
}

/// The file has all of it, or what it had before.
int replace(const std::string& file, const fs::file_status& before, const std::string& content) {
  std::error_code failed;
  const auto behind_links = fs::weakly_canonical(file, failed);
  const auto target = failed ? file : behind_links.string();
  const auto part = fmt::format("{}.part-{}", target, ::getpid());
  int error = write_into(part, content);
  // Where nothing can be added to the folder, the file itself may still be written.
  if (error == EACCES || error == ENAMETOOLONG) return write_into(target, content);
  if (error == 0 && fs::exists(before)) fs::permissions(part, before.permissions(), failed);
  if (error == 0 && ::rename(part.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(part.c_str());
  return error;
}

}  // namespace

void write_file(const std::string& file, const std::string& content, const char* option) {
  std::error_code ignored;
  const auto before = fs::status(file, ignored);
  const bool is_stream = fs::exists(before) && !fs::is_regular_file(before);
  const int error = is_stream ? write_into(file, content) : replace(file, before, content);
  if (error == 0) return;
  refuse(fmt::format("'{}' cannot be written ({}): {}", config::printable(file), option,
                     std::strerror(error)));
}

void require_writable(const std::string& file, const char* option) {
  if (file.empty()) return;
  const auto folder = std::filesystem::absolute(file).parent_path();
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(file, ignored);
  if (std::filesystem::is_directory(file, ignored))
    errno = EISDIR;
  else if (::access(is_there ? file.c_str() : folder.c_str(), W_OK) == 0)
    return;
  refuse(fmt::format("'{}' cannot be written ({}): {}", config::printable(file), option,
                     std::strerror(errno)));
}

void remove_old(const std::string& file, const char* option) {
  std::error_code ignored;
  if (file.empty() || !fs::is_regular_file(file, ignored)) return;
  if (!fs::is_symlink(file, ignored) && ::unlink(file.c_str()) == 0) return;
  // A link stays what it is, and a folder may be one from which nothing can be removed.
  const int error = write_into(file, {});
  if (error == 0) return;
  refuse(fmt::format("'{}' holds what an earlier run has written, and cannot be emptied ({}): {}",
                     config::printable(file), option, std::strerror(error)));
}

std::string read_file(const std::string& file, const char* option) {
  auto content = content_of(file);
  if (content.why_not.empty()) return std::move(content.bytes);
  refuse(fmt::format("'{}' cannot be read ({}): {}", config::printable(file), option,
                     content.why_not));
}

}  // namespace troupe::launch
