#include "node/log_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "node-";
constexpr const char* kLockFile = ".in-use";

os::UniqueFd open_lock(const fs::path& folder, int flags) {
  return os::UniqueFd(
      ::open((folder / kLockFile).c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
}

bool is_log_folder(const fs::directory_entry& entry) {
  std::error_code error;
  const auto name = entry.path().filename().string();
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos &&
         entry.symlink_status(error).type() == fs::file_type::directory;
}

/// One without a lock file may be about to get it: then its process is there.
bool has_ended(const fs::path& folder) {
  const auto lock = open_lock(folder, 0);
  if (lock) return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  std::error_code error;
  return errno == ENOENT &&
         !fs::exists("/proc/" + folder.filename().string().substr(kPrefix.size()), error);
}

}  // namespace

std::string LogFolder::open(const std::string& path) {
  path_ = path;
  std::error_code error;
  if (!fs::create_directories(path, error) && error) {
    return fmt::format("cannot make the log directory {}: {}", path, error.message());
  }
  lock_ = open_lock(path, O_CREAT);
  if (!lock_)
    return fmt::format("cannot write to the log directory {}: {}", path, std::strerror(errno));
  // Several nodes may share a folder; one that looks for old ones holds it for a moment.
  ::flock(lock_.get(), LOCK_SH);
  return {};
}

std::size_t remove_old_logs(const std::string& parent, std::size_t keep) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> ended;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_log_folder(*entry) || !has_ended(entry->path())) continue;
    std::error_code unknown;
    ended.emplace_back(fs::last_write_time(entry->path(), unknown), entry->path());
  }
  std::ranges::sort(ended, std::greater{});
  std::size_t removed = 0;
  for (std::size_t i = keep; i < ended.size(); ++i) {
    removed += fs::remove_all(ended[i].second, error) != static_cast<std::uintmax_t>(-1) ? 1 : 0;
  }
  return removed;
}

}  // namespace troupe::node
