#pragma once

#include <map>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

struct AshaOptions {
  std::int64_t max_t = 100;  ///< reports after which a trial is finished
  int eta = 4;               ///< the best 1/eta of a rung go on; at least 2
  std::int64_t grace = 1;    ///< reports before a trial is judged for the first time
  int brackets = 1;          ///< bracket s leaves out the s lowest rungs
  /// False: the stopping variant (Asha); true: the one of the paper, which pauses every trial at
  /// each rung, and lets the best go on from their checkpoints (AshaPromotion).
  bool promote = false;
};

/// Asynchronous successive halving, the stopping variant (Li et al., 2020, arXiv 1810.05934; the
/// rule of Ray's async_hyperband where this comment says no more).
///
///   Rungs    stand at t = grace * eta^k, k = 0, 1, ..., below max_t.
///   Judged   is a report in each rung with rung.t <= t in which the trial was not judged before, the lowest first, until
///            one stops it (Ray: in the highest alone). So a metric that comes now and then is judged as if the trial had
///            had it at the rungs that it has passed. The score is entered in each of these rungs, whatever the decision.
///   Cutoff   is the (1 - 1/eta) quantile of the scores that were in the rung before this one, interpolated linearly
///            between the neighbours of position (n-1)(1-1/eta), from 0, in ascending order; the upper neighbour where
///            the lower one is not finite; none in an empty rung.
///   Stopped  is a trial whose score is strictly below the cutoff, and one whose value is not finite, in an empty rung
///            too. Not finite values stay in the rung as its worst. No decision is revisited.
///   Finished is a trial at t >= max_t, whatever its score; that is entered as far as it would have come.
///   Brackets are drawn for a trial at its first report, with probabilities proportional to e^(number of rungs), from
///            (seed, trial) alone; each has rungs of its own.
///
/// The reason of each decision has the value, the cutoff and the number of trials that it was compared with, and with
/// several brackets the one that was drawn.
///
/// A report without the metric is not judged; the next one with it is, in the rungs that were due.
/// Cost of a report: O(trials in the rung) to insert, a memmove. Memory: one number for each trial in
/// each rung.
class Asha final : public TrialScheduler {
 public:
  /// Throws std::invalid_argument, naming the values, unless eta >= 2, 1 <= grace <= max_t, and
  /// every bracket has a rung (with one bracket there may be none: max_t == grace).
  Asha(AshaOptions options, Objective objective, std::uint64_t seed);

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  std::vector<RungSummary> rungs() const override;
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  struct Rung {
    std::int64_t t = 0;
    std::vector<double> scores = {};  // ascending
    std::size_t stopped = 0;
    std::size_t not_finite = 0;
  };
  struct Progress {
    std::size_t bracket = 0;
    int judged = -1;  // the highest rung, -1 before the first
    std::int64_t last_t = 0;
  };

  Progress& progress_of(TrialId trial);
  std::optional<double> cutoff(const Rung& rung) const;  // a score
  void take_up(std::string_view saved);
  std::string named(std::size_t bracket, std::size_t rung) const;
  void enter(Rung& rung, double score);
  Decision judge(std::size_t bracket, std::size_t rung, double value);
  Decision judge_passed(Progress& progress, std::int64_t t, double value);
  void enter_passed(Progress& progress, double value);
  Decision unjudged(std::size_t bracket, bool is_first) const;

  AshaOptions options_;
  Objective objective_;
  std::uint64_t seed_;
  std::vector<std::vector<Rung>> brackets_;
  std::map<TrialId, Progress> running_;
};

/// ASHA for `.scheduler`: Asha or, with `promote`, AshaPromotion. Throws like they do, at once.
SchedulerFactory asha(AshaOptions options);

}  // namespace troupe::tune
