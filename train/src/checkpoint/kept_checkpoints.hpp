#pragma once

#include <filesystem>
#include <vector>

#include <troupe/train/checkpoint.hpp>
#include <troupe/trainable.hpp>

namespace troupe::train {

/// Which of the checkpoints that a run has reported stay.
///
/// 1. The last one is never removed, nor one of the best CheckpointOptions::keep_best, of which the
///    earlier one is better where two are alike.
/// 2. A value that is no number is worse than any other.
class KeptCheckpoints {
 public:
  /// Throws std::invalid_argument, naming the option, for options that say nothing that can be
  /// done.
  explicit KeptCheckpoints(CheckpointOptions options);

  /// Throws std::invalid_argument, naming those that there are, where the report lacks the metric.
  void check(const Metrics& metrics) const;
  /// `metrics`: with which it was reported. -> what is to be removed now
  std::vector<std::filesystem::path> add(const std::filesystem::path& checkpoint,
                                         const Metrics& metrics);

 private:
  struct Kept {
    std::filesystem::path checkpoint;
    double value;  // lower is better
  };

  CheckpointOptions options_;
  std::vector<Kept> kept_;  // in the order of the reports
};

}  // namespace troupe::train
