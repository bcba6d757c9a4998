#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

struct MedianStoppingOptions {
  std::int64_t grace = 1;       ///< reports before a trial is judged, and that count of the others
  std::size_t min_samples = 3;  ///< others to compare with, without which nobody is stopped
  std::int64_t interval = 1;    ///< a trial is judged once in each so many reports after `grace`
};

/// The median stopping rule (Golovin et al., 2017, Google Vizier, KDD, section 3.2.2): a trial is
/// stopped whose best value until report t is strictly worse than the median of what the others
/// had on average until t.
///
///   Others   are all trials that have made a report at or after t, with the metric or without it, those that are over
///            too, and have reported the metric by t.
///   Average  of one is that of its values from report `grace` to t. One that is not finite makes it the worst there is.
///   Judged   is the first report with the metric at or after t = grace, and at or after each of grace + interval,
///            grace + 2 interval, ...; a value that is not finite stops the trial.
///
/// A function of (options, objective, order of reports). Cost of a report: O(trials, log of their
/// reports). Memory: two numbers for each report.
class MedianStopping final : public TrialScheduler {
 public:
  /// Throws std::invalid_argument, naming the values, unless all options are at least 1.
  MedianStopping(MedianStoppingOptions options, Objective objective);

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  SchedulerNeeds needs() const override { return {.first_judged_t = options_.grace}; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  struct Point {
    std::int64_t t = 0;
    double score = 0;
    double sum = 0;  // of the scores from `grace` on, up to this one
    std::int64_t count = 0;
  };
  struct Curve {
    std::vector<Point> points = {};  // t ascends
    std::int64_t t = 0;              // of the last report, also without the metric
  };

  void add(Curve& curve, std::int64_t t, double score) const;
  bool is_due(const Curve& curve, std::int64_t t) const;
  std::vector<double> averages_of_others(TrialId trial, std::int64_t t) const;

  MedianStoppingOptions options_;
  Objective objective_;
  std::map<TrialId, Curve> curves_;
};

/// Median stopping for `.scheduler`. Throws like it, at once.
SchedulerFactory median_stopping(MedianStoppingOptions options = {});

}  // namespace troupe::tune
