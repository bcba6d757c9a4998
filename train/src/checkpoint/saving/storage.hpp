#pragma once

#include <filesystem>

#include "os/unique_fd.hpp"

namespace troupe::train {

/// The folder of one run's checkpoints, which no other run writes to while this lives: `wanted`, or
/// `wanted`/run_1, run_2, ... where runs that live have those before it. A killed process has none.
/// Where the file system has no locks, `wanted`.
class CheckpointStorage {
 public:
  /// Creates the folder. Throws troupe::Error with the system's reason, also where
  /// nothing can be written to it.
  explicit CheckpointStorage(const std::filesystem::path& wanted);

  const std::filesystem::path& folder() const { return folder_; }
  /// Whether the folder is the one that was locked, and not one that was made anew since.
  bool is_there() const;
  /// Whether no other run can have the folder.
  bool is_locked() const { return static_cast<bool>(lock_); }

 private:
  std::filesystem::path folder_;
  os::UniqueFd lock_;
};

}  // namespace troupe::train
