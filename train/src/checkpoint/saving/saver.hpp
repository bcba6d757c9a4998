#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <troupe/train/checkpoint.hpp>
#include <troupe/train/communicator.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/saving/shard_file.hpp"

namespace troupe::train {

class CheckpointStorage;
struct RankOutcome;

/// What one rank writes of a checkpoint, and what it says of that.
struct RankShare {
  Manifest manifest;
  ShardFiles files;
};

/// Writes a run's checkpoints, one at a time, in a thread of its own. One for each rank.
///
///   what happens           rank 0                              other ranks
///   begin                  makes the directory,                take the name
///                          sends its name
///   the thread, writing    writes its files                    write theirs, or send them to
///                                                              rank 0 where they do not see the
///                                                              directory
///   the thread, then       takes from each rank what it        tell rank 0
///                          wrote, or why it did not; writes
///                          the manifest; commits, or removes
///                          the directory
///
/// 1. The training waits in begin() for a save before it, and for the name; and then for nothing
///    but what it asks CheckpointSave to wait for.
/// 2. The directory gets its name after the files of all ranks and the manifest are durable.
/// 3. A file that cannot be written ends the save and not the training: the reason comes to rank 0,
///    and the checkpoints before are as they were.
/// 4. The thread alone uses the communicator while a save is in flight.
///
/// Lives in one rank's process; used by the thread of the context.
class Saver {
 public:
  /// `between`: the ranks, for this alone; nullptr: there is one. `timeout`: of
  /// CheckpointSave::wait().
  Saver(std::filesystem::path storage, std::unique_ptr<Communicator> between,
        std::chrono::milliseconds timeout);
  /// Waits for the save in flight.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// A collective. Throws what the save before it could not tell anybody, and troupe::Error, on
  /// every rank, where rank 0 cannot make the storage.
  std::shared_ptr<SaveInFlight> begin(RankShare share);
  /// Returns once no save is in flight. Throws what that save could not tell anybody.
  void finish();
  /// Ends the save in flight on all ranks, as far as they have not written their parts.
  void abort(std::string_view reason);

 private:
  bool is_first() const { return !between_ || between_->rank() == 0; }
  void open_storage();
  void tell_storage() const;
  std::string open_directory();
  void give_up(SaveInFlight& save, const std::string& why);
  static std::string write_files(const SaveInFlight& save, RankShare& share, FileSink& sink);
  static std::string take(Manifest& manifest, int rank, const RankOutcome& outcome);
  void write_first(SaveInFlight& save, RankShare share);
  void write_other(SaveInFlight& save, RankShare share, const std::filesystem::path& folder);
  std::filesystem::path commit(const Manifest& manifest);

  const std::filesystem::path wanted_;
  const std::unique_ptr<Communicator> between_;
  const std::chrono::milliseconds timeout_;
  bool has_storage_ = false;
  std::unique_ptr<CheckpointStorage> storage_;  // on rank 0, from the first save on
  std::optional<PendingCheckpoint> pending_;    // on rank 0, while a save is in flight
  std::filesystem::path last_;                  // on rank 0, that was committed
  std::shared_ptr<SaveInFlight> in_flight_;
  std::thread thread_;
};

}  // namespace troupe::train
