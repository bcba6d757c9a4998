#include "workdir/remove_folder.hpp"

#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/unique_fd.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// By the folder itself and not by its name, which may be another's by then.
void make_writable(const fs::path& folder) {
  const os::UniqueFd found(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!found || ::fstat(found.get(), &status) != 0) return;
  if ((status.st_mode & S_IRWXU) != S_IRWXU)
    ::chmod(fmt::format("/proc/self/fd/{}", found.get()).c_str(), S_IRWXU);
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->symlink_status(ignored).type() == fs::file_type::directory)
      make_writable(entry->path());
  }
}

}  // namespace

std::error_code remove_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error != std::errc::permission_denied) return error;
  make_writable(folder);
  fs::remove_all(folder, error);
  return error;
}

}  // namespace troupe::launch
