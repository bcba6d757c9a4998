#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include <troupe/trainable.hpp>

namespace troupe::train {

/// How fast a run is and when it will end, from what its rank 0 tells now and then. Pure: times are
/// passed in, as seconds of any one clock. Used by one thread. Cost: at most kMostSamples numbers
/// are kept.
///
/// The rate is that of the steps of the last kWindow seconds in which steps were done, and at least
/// of the last two that are known: what lies between the steps of two epochs (validation,
/// checkpoints) does not change it. The time that is left is that of the steps that are left, at
/// this rate, and for each epoch that is left the mean of the times between epochs. The first such
/// time counts as far as it has come while it lasts, so that the time that is left grows rather
/// than jumps. Where an epoch has no steps that are told of, the epochs that this run has ended say
/// how long those that are left take.
class ProgressEstimate {
 public:
  static constexpr double kWindow = 30;
  /// Before that neither rate nor time left means something.
  static constexpr std::int64_t kLeastSteps = 2;
  static constexpr double kLeast = 1;  ///< seconds of steps
  static constexpr std::size_t kMostSamples = 512;

  void on(const TrainingProgress& progress, double now);

  const TrainingProgress& progress() const { return last_; }
  /// Of the run, where it has epochs, else of its steps: 0 to 1.
  std::optional<double> fraction() const;
  std::optional<double> steps_per_s() const;
  std::optional<double> rows_per_s() const;  ///< of all ranks
  /// Of all that this run did; none: none were timed.
  std::optional<double> mean_steps_per_s() const;
  std::optional<double> mean_rows_per_s() const;
  std::optional<double> seconds_left(double now) const;

 private:
  struct Sample {
    double seconds = 0;
    std::int64_t steps = 0;
    std::int64_t rows = 0;
  };

  Sample in_window() const;
  double steps_left_s(double step_s, double since) const;
  double gaps_left_s(double since) const;
  std::optional<double> epochs_left_s(double now) const;

  TrainingProgress last_;
  double stepped_ = 0;                    // when it came with another step than before
  double first_gap_ = 0;                  // how long it was, before rank 0 has said so
  double epoch_began_ = 0;                // when it came with another epoch than before
  std::deque<Sample> samples_{Sample{}};  // the first is the one before the window
};

}  // namespace troupe::train
