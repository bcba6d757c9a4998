#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <troupe/train/data/loader.hpp>
#include <troupe/trainable.hpp>

namespace troupe::train {

/// Counts what rank 0 does, from what it says of itself: when an epoch begins, when a batch of a
/// loader is done, or how many of its own steps are done. Pure: times are passed in. Used by one
/// thread at a time.
///
/// The steps of an epoch are the batches of the first loader that comes to the end of a batch in
/// it: loaders that follow in the same epoch are for validation. Without Context::epochs() an epoch
/// begins with the first batch of a loader that was made for a later epoch. Once the function has
/// said itself how many steps are done, no loader counts.
///
/// The time from the end of one epoch's last step to the beginning of the next epoch's first step
/// is a gap. The first step of all is not timed: it makes communicators and warms caches.
class StepCounter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Each batch is taken to have as many rows on each of the `ranks` ranks as it has on this one.
  explicit StepCounter(std::int64_t ranks) : ranks_(ranks) {}

  /// `epoch` from 0.
  void on_epoch(int epoch, int epochs, Time now);
  /// The last of the epochs has ended.
  void on_epochs_ended(int epochs, Time now);
  /// Batch number `done`, from 1, of a loader's `total`, is done. -> whether it counts
  bool on_batch(const detail::LoaderPass& pass, std::int64_t done, std::int64_t total,
                std::int64_t rows, Time now);
  void on_steps(std::int64_t done, std::int64_t total, std::string_view unit, Time now);

  const TrainingProgress& progress() const { return progress_; }

 private:
  void end_epoch(Time now);
  void begin_epoch(int epoch);
  bool counts(const detail::LoaderPass& pass);
  void begin_steps(Time began);
  void add_steps(std::int64_t steps, std::int64_t rows, Time now);

  const std::int64_t ranks_;
  TrainingProgress progress_;
  bool has_epochs_ = false;            // of Context::epochs()
  bool says_steps_ = false;            // by on_steps()
  bool has_begun_ = false;             // the steps of this epoch
  bool is_first_step_ = true;          // that is not timed
  std::optional<std::uint64_t> pass_;  // that counts in this epoch
  std::optional<Time> epoch_began_;
  std::optional<Time> step_ended_;  // the last one
};

}  // namespace troupe::train
