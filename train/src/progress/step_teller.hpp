#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include <troupe/train/data/loader.hpp>
#include <troupe/trainable.hpp>

#include "progress/step_counter.hpp"

namespace troupe::train::detail {

/// Tells the driver how far rank 0 is. A context has one, if the driver wants to know, and its
/// loaders share it. Any thread: batches may be loaded by another thread than the function's. Cost
/// of each call: two locks that nobody holds for long, and the time of day; nothing waits.
class StepTeller {
 public:
  /// `member` outlives this, or detach() is called before it ends.
  explicit StepTeller(Member& member);
  StepTeller(const StepTeller&) = delete;
  StepTeller& operator=(const StepTeller&) = delete;

  /// `epoch` from 0.
  void on_epoch(int epoch, int epochs);
  void on_epochs_ended(int epochs);
  /// `epoch`: for which the loader was made.
  LoaderPass begin_pass(int epoch);
  void on_batch(const LoaderPass& pass, std::int64_t done, std::int64_t total, std::int64_t rows);
  void on_steps(std::int64_t done, std::int64_t total, std::string_view unit);
  /// Loaders may outlive the context: nothing is told after this.
  void detach();

 private:
  void tell();

  std::mutex mutex_;  // guards what follows
  Member* member_;
  StepCounter counter_;
  std::uint64_t passes_ = 0;
};

}  // namespace troupe::train::detail
