#include "progress/progress_estimate.hpp"

#include <algorithm>

namespace troupe::train {
namespace {

/// Of the steps of the epoch that is under way.
double part_of_epoch(const TrainingProgress& progress) {
  if (progress.total <= 0) return 0;
  return std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(progress.total));
}

std::optional<double> per_second(std::int64_t count, double seconds) {
  if (count <= 0 || seconds <= 0) return std::nullopt;
  return static_cast<double>(count) / seconds;
}

bool all_ended(const TrainingProgress& progress) {
  return progress.epochs > 0 && progress.ended_epochs >= progress.epochs;
}

}  // namespace

void ProgressEstimate::on(const TrainingProgress& progress, double now) {
  if (progress.timed_steps > samples_.back().steps) {
    samples_.push_back({progress.steps_s, progress.timed_steps, progress.timed_rows});
    while (samples_.size() > 2 &&
           (samples_[1].seconds <= progress.steps_s - kWindow || samples_.size() > kMostSamples))
      samples_.pop_front();
  }
  const bool is_other_epoch = progress.epoch != last_.epoch;
  if (is_other_epoch) {
    epoch_began_ = now;
    if (last_.total > 0 && last_.done >= last_.total) first_gap_ = now - stepped_;
  }
  if (is_other_epoch || progress.done != last_.done) stepped_ = now;
  last_ = progress;
}

std::optional<double> ProgressEstimate::fraction() const {
  const auto ended = static_cast<double>(last_.ended_epochs);
  if (last_.epochs > 0) {
    const auto epochs = static_cast<double>(last_.epochs);
    return all_ended(last_) ? 1 : std::min(1.0, (ended + part_of_epoch(last_)) / epochs);
  }
  if (last_.total > 0) return part_of_epoch(last_);
  return std::nullopt;
}

ProgressEstimate::Sample ProgressEstimate::in_window() const {
  const auto& from = samples_.front();
  const auto& to = samples_.back();
  if (to.steps < kLeastSteps || to.seconds < kLeast) return {};
  return {to.seconds - from.seconds, to.steps - from.steps, to.rows - from.rows};
}

std::optional<double> ProgressEstimate::steps_per_s() const {
  const auto window = in_window();
  return per_second(window.steps, window.seconds);
}

std::optional<double> ProgressEstimate::rows_per_s() const {
  const auto window = in_window();
  return per_second(window.rows, window.seconds);
}

std::optional<double> ProgressEstimate::mean_steps_per_s() const {
  return per_second(last_.timed_steps, last_.steps_s);
}

std::optional<double> ProgressEstimate::mean_rows_per_s() const {
  return per_second(last_.timed_rows, last_.steps_s);
}

/// A step that is under way counts down, but not below its end.
double ProgressEstimate::steps_left_s(double step_s, double since) const {
  const auto total = static_cast<double>(last_.total);
  const auto of_epoch = std::max(0.0, total - static_cast<double>(last_.done));
  const auto later = std::max<std::int64_t>(0, last_.epochs - last_.ended_epochs - 1);
  const bool is_stepping = last_.done > 0 && last_.done < last_.total;
  const auto passed = is_stepping ? std::min(since, step_s) : 0;
  return (of_epoch + static_cast<double>(later) * total) * step_s - passed;
}

/// One follows the steps of each epoch. What an epoch's first step waits for belongs to the gap
/// before it.
double ProgressEstimate::gaps_left_s(double since) const {
  const auto left = static_cast<double>(last_.epochs - last_.ended_epochs);
  if (left <= 0) return 0;
  const bool is_gap = last_.done >= last_.total;
  if (last_.gaps == 0) return is_gap ? (left - 1) * since : left * first_gap_;
  const auto gap = last_.gaps_s / static_cast<double>(last_.gaps);
  return left * gap - (is_gap ? std::min(since, gap) : 0);
}

std::optional<double> ProgressEstimate::epochs_left_s(double now) const {
  if (last_.timed_epochs == 0) return std::nullopt;
  const auto epoch_s = last_.epochs_s / static_cast<double>(last_.timed_epochs);
  const auto left = static_cast<double>(last_.epochs - last_.ended_epochs);
  return left * epoch_s - std::min(now - epoch_began_, epoch_s);
}

std::optional<double> ProgressEstimate::seconds_left(double now) const {
  if (all_ended(last_)) return std::nullopt;
  if (last_.total <= 0) return last_.epochs > 0 ? epochs_left_s(now) : std::nullopt;
  const auto steps = steps_per_s();
  if (!steps) return std::nullopt;
  const auto since = std::max(0.0, now - stepped_);
  return std::max(0.0, steps_left_s(1 / *steps, since) + gaps_left_s(since));
}

}  // namespace troupe::train
