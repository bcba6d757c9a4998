#include "checkpoint/saving/storage.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "checkpoint/directory.hpp"
#include "files/errors.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

enum class Lock { Ours, Theirs, None };

/// Whose the lock of a file is from here on. None: it is not open, or its file system has no locks.
Lock lock(const os::UniqueFd& file) {
  if (!file) return Lock::None;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::Theirs : Lock::None;
  }
  return Lock::Ours;
}

}  // namespace

CheckpointStorage::CheckpointStorage(const fs::path& wanted) : folder_(wanted) {
  make_storage(folder_);
  for (int other = 1; !take(folder_); ++other) {
    folder_ = wanted / fmt::format("run_{}", other);
    make_storage(folder_);
  }
  if (::access(folder_.c_str(), W_OK | X_OK) != 0)
    not_done(fmt::format("cannot write to {}", in_words(folder_)), std::strerror(errno));
}

/// -> whether no other run that lives has the folder.
bool CheckpointStorage::take(const fs::path& folder) {
  os::UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto of_folder = lock(opened);
  if (of_folder == Lock::Theirs) return false;
  os::UniqueFd file(
      ::open((folder / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  const auto of_file = lock(file);
  if (of_file == Lock::Theirs) return false;
  is_locked_ = (file ? of_file : of_folder) == Lock::Ours;
  opened_ = std::move(opened);
  file_ = std::move(file);
  return true;
}

bool CheckpointStorage::is_there() const {
  struct stat now {
  }, then{};
  if (::stat(folder_.c_str(), &now) != 0) return false;
  if (!opened_ || ::fstat(opened_.get(), &then) != 0) return true;
  return now.st_ino == then.st_ino && now.st_dev == then.st_dev;
}

}  // namespace troupe::train
