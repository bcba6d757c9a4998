#include "workdir/live_folder.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words/refuse.hpp"
#include "workdir/remove_folder.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

struct Lock {
  os::UniqueFd file;      // none: somebody else has it, or there can be none
  bool is_named = false;  // still what stands under its name
};

bool is_named(const os::UniqueFd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

/// `flags`: O_CREAT to make it. `how`: of flock(2).
Lock lock(const std::string& name, int flags, int how) {
  os::UniqueFd file(::open(name.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (!file) return {};
  while (::flock(file.get(), how) != 0) {
    if (errno != EINTR) return {};
  }
  const bool named = is_named(file);
  return {std::move(file), named};
}

std::string partial(const std::string& folder) { return folder + ".partial"; }

}  // namespace

LiveFolder::LiveFolder(const std::string& parent, const std::string& name,
                       const std::function<void(const std::string&)>& fill)
    : parent_(parent), path_(parent + "/" + name) {
  std::error_code ignored;
  fs::create_directories(parent, ignored);
  const auto file = path_ + ".lock";
  for (;;) {
    auto taken = lock(file, O_CREAT, LOCK_EX | LOCK_NB);
    if (taken.is_named && !fs::is_directory(path_, ignored)) {
      fill(partial(path_));
      fs::rename(partial(path_), path_);
    }
    // Somebody has it, or fills it.
    if (!taken.file) taken = lock(file, O_CREAT, LOCK_SH);
    if (!taken.file) {
      refuse(
          fmt::format("'{}' cannot be made and locked: {}; name a folder of a local "
                      "disk with XDG_STATE_HOME",
                      file, std::strerror(errno)));
    }
    ::flock(taken.file.get(), LOCK_SH);
    if (!is_named(taken.file) || !fs::is_directory(path_, ignored)) continue;  // taken for left
    lock_ = std::move(taken.file);
    return;
  }
}

LiveFolder::~LiveFolder() {
  lock_.reset();
  remove_left_folders(parent_);
}

void remove_left_folders(const std::string& parent) {
  std::error_code error;
  std::vector<std::string> folders;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    auto path = entry->path();
    if (path.extension() == ".lock") folders.push_back(path.replace_extension().string());
  }
  for (const auto& folder : folders) {
    const auto taken = lock(folder + ".lock", 0, LOCK_EX | LOCK_NB);
    if (!taken.is_named) continue;
    remove_folder(partial(folder));
    std::error_code ignored;
    if (!remove_folder(folder)) fs::remove(folder + ".lock", ignored);
  }
}

}  // namespace troupe::launch
