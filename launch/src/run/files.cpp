#include "run/files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "config/name.hpp"
#include "os/files/replace_file.hpp"
#include "words/refuse.hpp"
#include "workdir/file_content.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_write(const std::string& file, const char* option,
                               const std::string& why) {
  refuse(fmt::format("'{}' cannot be written ({}): {}", config::printable(file), option, why));
}

}  // namespace

void write_file(const std::string& file, const std::string& content, const char* option) {
  try {
    os::replace_file(file, content);
  } catch (const std::system_error& error) {
    refuse_write(file, option, error.code().message());
  }
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
  refuse_write(file, option, std::strerror(errno));
}

void remove_old(const std::string& file, const char* option) {
  std::error_code ignored;
  if (file.empty() || !fs::is_regular_file(file, ignored)) return;
  if (!fs::is_symlink(file, ignored) && ::unlink(file.c_str()) == 0) return;
  // A link stays what it is, and a folder may be one from which nothing can be removed.
  try {
    os::overwrite_file(file, {});
  } catch (const std::system_error& error) {
    refuse(fmt::format("'{}' holds what an earlier run has written, and cannot be emptied ({}): {}",
                       config::printable(file), option, error.code().message()));
  }
}

std::string read_file(const std::string& file, const char* option) {
  auto content = content_of(file);
  if (content.why_not.empty()) return std::move(content.bytes);
  refuse(fmt::format("'{}' cannot be read ({}): {}", config::printable(file), option,
                     content.why_not));
}

}  // namespace troupe::launch
