#pragma once

#include <filesystem>

#include "os/unique_fd.hpp"

namespace troupe::train {

/// The folder of one run's checkpoints, which no other run writes to while this lives: `wanted`, or
/// `wanted`/run_1, run_2, ... where runs that live have those before it. A killed process has none.
/// Where the file system has no locks, `wanted`.
///
/// The lock is of the file kLockName in the folder, which stays there: NFS has locks between
/// machines for files that are open for writing alone. The folder is locked too, for a run that
/// cannot make the file, and for a file that somebody removes.
class CheckpointStorage {
 public:
  static constexpr const char* kLockName = ".lock";

  /// Creates the folder. Throws troupe::Error with the system's reason, also where
  /// nothing can be written to it.
  explicit CheckpointStorage(const std::filesystem::path& wanted);

  const std::filesystem::path& folder() const { return folder_; }
  /// Whether the folder is the one that was locked, and not one that was made anew since.
  bool is_there() const;
  /// Whether no other run can have the folder.
  bool is_locked() const { return is_locked_; }

 private:
  bool take(const std::filesystem::path& folder);

  std::filesystem::path folder_;
  os::UniqueFd opened_;  // the folder, whose number no other folder has meanwhile
  os::UniqueFd file_;
  bool is_locked_ = false;
};

}  // namespace troupe::train
