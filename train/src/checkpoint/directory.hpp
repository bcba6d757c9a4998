#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// Checkpoints as directories <storage>/checkpoint_<number>: there whole or not at all.
namespace troupe::train {

/// A checkpoint that is being written: <storage>/checkpoint_<number>.tmp until commit(), which
/// makes files, directory and name durable, in this order, by fsync and rename. Removed by the
/// destructor unless it was committed; what killed processes left is removed by the next one. One
/// writer per storage.
class PendingCheckpoint {
 public:
  /// Numbered one above the highest that is there. Creates the storage. Throws troupe::Error with
  /// the system's reason.
  explicit PendingCheckpoint(const std::filesystem::path& storage);
  ~PendingCheckpoint();
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  /// Where to write a file of the checkpoint.
  std::filesystem::path file(const std::string& name) const { return unfinished_ / name; }
  /// -> the checkpoint's directory.
  std::filesystem::path commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path unfinished_;
  bool committed_ = false;
};

/// The committed checkpoint with the highest number; empty if there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& storage);

}  // namespace troupe::train
