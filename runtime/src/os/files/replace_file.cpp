#include "os/files/replace_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "os/files/pending_file.hpp"
#include "os/files/read_write.hpp"
#include "os/unique_fd.hpp"

namespace troupe::os {
namespace fs = std::filesystem;
namespace {

/// False: no file can be added beside this one.
bool try_to_replace(const fs::path& path, std::string_view content) {
  try {
    PendingFile pending(path);
    pending.write(content.data(), content.size());
    pending.commit();
  } catch (const std::system_error& error) {
    const auto code = error.code().value();
    if (code != EACCES && code != ENAMETOOLONG) throw;
    return false;
  }
  return true;
}

}  // namespace

void replace_file(const fs::path& path, std::string_view content) {
  std::error_code ignored;
  const auto before = fs::status(path, ignored);
  const bool is_other = fs::exists(before) && !fs::is_regular_file(before);
  if (is_other || !try_to_replace(path, content)) overwrite_file(path, content);
}

void overwrite_file(const fs::path& path, std::string_view content) {
  UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out) throw std::system_error(errno, std::generic_category());
  write_all(out.get(), content.data(), content.size());
  if (::close(out.release()) != 0) throw std::system_error(errno, std::generic_category());
}

}  // namespace troupe::os
