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

/// Whether another run that lives has the folder. `lock`: of this run, if it can have one.
bool is_taken(const fs::path& folder, os::UniqueFd& lock) {
  os::UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return false;
  while (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK;
  }
  lock = std::move(opened);
  return false;
}

}  // namespace

CheckpointStorage::CheckpointStorage(const fs::path& wanted) : folder_(wanted) {
  make_storage(folder_);
  for (int other = 1; is_taken(folder_, lock_); ++other) {
    folder_ = wanted / fmt::format("run_{}", other);
    make_storage(folder_);
  }
  if (::access(folder_.c_str(), W_OK | X_OK) != 0)
    not_done(fmt::format("cannot write to {}", in_words(folder_)), std::strerror(errno));
}

bool CheckpointStorage::is_there() const {
  struct stat now {
  }, then{};
  if (::stat(folder_.c_str(), &now) != 0) return false;
  if (!lock_ || ::fstat(lock_.get(), &then) != 0) return true;
  return now.st_ino == then.st_ino && now.st_dev == then.st_dev;
}

}  // namespace troupe::train
