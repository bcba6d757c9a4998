#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <troupe/train/checkpoint.hpp>

/// Checkpoints as directories <storage>/checkpoint_<number>: there whole or not at all.
namespace troupe::train {

/// A checkpoint that is being written: <storage>/checkpoint_<number>.<16 digits>.tmp until it is
/// committed. No other one ever has that name, so that what a process writes that should have ended
/// is in no other checkpoint. Removed by the destructor unless it was committed; what killed
/// processes left is removed by the next one that is alone. Used by one thread at a time.
class PendingCheckpoint {
 public:
  /// Numbered one above the highest that is there. Creates the storage. `is_alone`: no other
  /// process writes to the storage. Throws troupe::Error with the system's reason.
  explicit PendingCheckpoint(const std::filesystem::path& storage, bool is_alone = true);
  ~PendingCheckpoint();
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  /// The directory until commit().
  const std::filesystem::path& folder() const { return unfinished_; }
  /// Where to write a file of the checkpoint, by a PendingFile: its commit() makes the file and the
  /// file's name in the directory durable, on the machine that wrote the file.
  std::filesystem::path file(const std::string& name) const { return unfinished_ / name; }
  /// Renames the directory, whose files must be durable, and makes the new name durable.
  /// -> the checkpoint's directory, with the next number that is free.
  std::filesystem::path commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path unfinished_;
  bool committed_ = false;
};

/// With its parents, durably. Throws troupe::Error with the system's reason.
void make_storage(const std::filesystem::path& folder);

/// The committed checkpoints beside this one whose numbers are lower, the highest first; all of
/// them where this has no number.
std::vector<std::filesystem::path> checkpoints_before(const std::filesystem::path& checkpoint);

/// A checkpoint that nobody wants any more: it loses its name first, so that it is there whole
/// until it is gone. What cannot be removed is left to the next PendingCheckpoint.
void remove_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace troupe::train
