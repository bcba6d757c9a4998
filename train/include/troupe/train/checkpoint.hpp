#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <troupe/detail/archive.hpp>
#include <troupe/train/model_handle.hpp>

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// A committed checkpoint, on rank 0; empty elsewhere, and where the run has no storage.
struct Checkpoint {
  std::filesystem::path directory = {};
  /// Why there is none, on rank 0: "cannot write /a/b: No space left on device". It was logged, and
  /// the checkpoints before are as they were.
  std::string error = {};
};

/// Which checkpoints of a run stay. The last one that was reported always does, and so do those
/// that were never reported. Not for a sweep, which looks after its trials' checkpoints itself
/// (`.keep_checkpoints`), and would miss what is deleted.
struct CheckpointOptions {
  enum class Best : std::uint8_t { Lowest, Highest };
  /// So many of those that were reported stay, the best ones; 0: all. The others are deleted once
  /// the report of a later one was judged.
  int keep_best = 0;
  std::string metric = {};   ///< in the report that a checkpoint came with
  Best best = Best::Lowest;  ///< value of the metric
};

class SaveInFlight;

/// A checkpoint that is being written while the training goes on: what Context::begin_checkpoint()
/// returns. Of it only the rank's thread may use it. If it is dropped, the checkpoint is written
/// all the same.
class CheckpointSave {
 public:
  /// A save of nothing, which is done.
  CheckpointSave() = default;
  explicit CheckpointSave(std::shared_ptr<SaveInFlight> save) : save_(std::move(save)) {}

  /// Returns on rank 0 once the checkpoint is committed or has failed, and elsewhere once this rank
  /// has written its part. Throws GangBroken where a rank died meanwhile, and TimedOut after
  /// ContextOptions::timeout.
  Checkpoint wait() const;
  /// Whether wait() would return at once.
  bool is_done() const;

 private:
  std::shared_ptr<SaveInFlight> save_;  // nullptr: nothing is saved
};

/// The committed checkpoint in a run's storage with the highest number, to continue from with
/// RunOptions::restore_from; empty if there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& storage);

/// Reads model `number` of a checkpoint, counted as ctx.checkpoint() was given them, into a model
/// that need not be of a run. Its parameters and buffers keep their types and devices. Each value
/// is compared with its checksum. Throws std::invalid_argument, naming the first difference, before
/// anything is read, where the checkpoint is of another model; troupe::Error for files that cannot
/// be read, or that were truncated or altered, naming the checkpoint before that is whole: after
/// that error the model may have some of the values.
void load(torch::nn::Module& model, const std::filesystem::path& checkpoint,
          std::size_t number = 0);
/// The same for what a model is held by: torch::nn::ModuleHolder, or a pointer.
template <class Model>
requires requires(Model& model) { *model; }
void load(Model& model, const std::filesystem::path& checkpoint, std::size_t number = 0) {
  load(model ? *model : detail::no_model(), checkpoint, number);
}

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::CheckpointOptions::Best> {
  static constexpr auto first = troupe::train::CheckpointOptions::Best::Lowest;
  static constexpr auto last = troupe::train::CheckpointOptions::Best::Highest;
};
