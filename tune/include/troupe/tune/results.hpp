#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/scheduler.hpp>
#include <troupe/tune/space.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

namespace detail {
/// What a run came to, before it is known as what type its configurations are.
struct Outcome {
  Objective objective = {};
  std::vector<Objective> objectives = {};  ///< all of them, where there are several; else empty
  std::vector<Trial> trials = {};
  std::optional<TrialId> best = {};
  std::vector<TrialId> pareto = {};  ///< the front, in its order
  std::vector<RungSummary> rungs = {};
  std::string ended_early = {};
  std::string summary = {};
  std::filesystem::path folder = {};
  Seconds duration{0};
};

/// "trial 7: accuracy 0.9813 at t=27 with lr=0.03, batch=64".
std::string describe(const Trial& trial, const Objective& objective);
/// Of a member of the front: "trial 7: loss 0.0813, latency 3.5 at t=27 with lr=0.03, batch=64".
std::string describe_values(const Trial& trial, const std::vector<Objective>& objectives);
/// Throws std::runtime_error: no trial has a value, and why.
[[noreturn]] void refuse_best(const Outcome& outcome);
}  // namespace detail

/// One trial with its configuration as the program knows it.
template <class Config>
struct TrialResult {
  /// What the function was given when it made its best report; see Results::schedule()
  Config config;
  Trial trial;
  std::string text;  ///< for people; what << prints

  /// The best that it reported; throws std::bad_optional_access.
  double value() const { return trial.best.value(); }
  friend std::ostream& operator<<(std::ostream& out, const TrialResult& result) {
    return out << result.text;
  }
};

/// What a run came to. A value.
template <class Config>
class Results {
 public:
  Results(detail::Outcome outcome, const Config& base) : outcome_{std::move(outcome)} {
    for (const auto& trial : outcome_.trials) {
      trials_.push_back({configured(base, config_of_best(trial)), trial,
                         detail::describe(trial, outcome_.objective)});
    }
    for (const auto id : outcome_.pareto) {
      front_.push_back(trials_[id]);
      if (outcome_.objectives.empty()) continue;
      front_.back().config = configured(base, config_of_values(front_.back().trial));
      front_.back().text = detail::describe_values(front_.back().trial, outcome_.objectives);
    }
  }

  /// The trial with the best value of the metric in any of its reports, the first of equals. Throws
  /// std::runtime_error, with the first trial's error, if no trial reported a finite one.
  const TrialResult<Config>& best() const {
    if (!outcome_.best) detail::refuse_best(outcome_);
    return trials_[*outcome_.best];
  }
  const std::vector<TrialResult<Config>>& trials() const { return trials_; }  ///< all, by id
  /// The trials that no other one dominates: none is at least as good in every objective and better
  /// in one. What counts of a trial is its last report with all objectives (Trial::values), and the
  /// configuration is the one that it was made with. One that failed, has no such report or a value
  /// in it that is not finite, is not among them; one that was stopped may be. Ordered by the first
  /// objective, the best first, of equals by the next one, at last by id. With one objective: the
  /// trials whose best report is as good as best()'s. May be empty.
  const std::vector<TrialResult<Config>>& pareto_front() const { return front_; }
  /// The configurations that led to the best trial's best report, from its first step through those
  /// that it took over, in the order of training. One where it took over nobody. Throws like
  /// best().
  std::vector<Segment> schedule() const {
    best();
    return schedule_to_best(outcome_.trials, *outcome_.best);
  }
  const std::vector<RungSummary>& rungs() const { return outcome_.rungs; }
  /// Why; empty: every trial was run.
  const std::string& ended_early() const { return outcome_.ended_early; }
  /// What was shown at the end, without colour.
  const std::string& summary() const { return outcome_.summary; }
  /// Of this run's files; empty: none.
  const std::filesystem::path& folder() const { return outcome_.folder; }
  Seconds duration() const { return outcome_.duration; }

 private:
  detail::Outcome outcome_;
  std::vector<TrialResult<Config>> trials_;
  std::vector<TrialResult<Config>> front_;
};

}  // namespace troupe::tune
