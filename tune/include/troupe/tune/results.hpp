#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/known.hpp>
#include <troupe/tune/scheduler.hpp>
#include <troupe/tune/space.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// By which of its reports Results::best() compares a trial. The names are those of Ray Tune.
enum class Scope : std::uint8_t {
  All,   ///< the best of all
  Last,  ///< the last one with the metric; where its value is not finite, the trial is left out
};

/// Which trial is the best one: results.best({.scope = tune::Scope::Last}).
struct BestOf {
  Scope scope = Scope::All;
  /// Trials that failed (Status::Errored) count too, with what they had reported before.
  bool including_failed = false;
  friend bool operator==(const BestOf&, const BestOf&) = default;
};

namespace detail {
/// What `.config` had before a run was gone on with, with another one.
struct EarlierConfig {
  std::vector<int> attempts = {};  ///< of each trial by id, until then
  Configuration unsearched = {};   ///< the fields that have another value since
};
/// Of the trial's last attempt; as many: it had the run's last `.config`. It had that of the later ones
/// as far as this one does not say.
std::size_t config_of_attempt(const std::vector<EarlierConfig>& earlier, const Trial& trial);

/// What each of them had in all fields, and `last` behind them.
template <class Config>
std::vector<Config> all_configs(const std::vector<EarlierConfig>& earlier, const Config& last) {
  std::vector<Config> all{last};
  for (auto each = earlier.rbegin(); each != earlier.rend(); ++each)
    all.push_back(with_unsearched(all.back(), each->unsearched));
  std::ranges::reverse(all);
  return all;
}

/// The results of a run, without the type of its configurations.
struct Outcome {
  Objective objective = {};
  std::vector<Objective> objectives = {};  ///< all objectives if there are several, else empty
  std::vector<Trial> trials = {};
  std::optional<TrialId> best = {};  ///< of BestOf{}
  std::vector<TrialId> pareto = {};  ///< the front, in its order
  Configuration unsearched = {};  ///< of a loaded run: Plan::unsearched, where its folder has that
  std::vector<EarlierConfig> earlier = {};
  std::vector<RungSummary> rungs = {};
  std::string ended_early = {};    ///< why, for people
  std::optional<int> signal = {};  ///< that came while the run was active
  bool has_cluster_ended = false;  ///< before the run was over
  std::string summary = {};
  std::filesystem::path folder = {};
  Seconds duration{0};

  int exit_code() const {
    if (signal) return 128 + *signal;
    if (has_cluster_ended) return 125;
    const bool has_front = objectives.empty() || !pareto.empty();
    return best && has_front ? 0 : 1;
  }
};

/// "trial 7: accuracy 0.9813 at t=27 with lr=0.03, batch=64".
std::string describe(const Trial& trial, const Objective& objective);
/// For a trial of the front: "trial 7: loss 0.0813, latency 3.5 at t=27 with lr=0.03, batch=64".
std::string describe_values(const Trial& trial, const std::vector<Objective>& objectives);
/// Whether Results::known() has the trial.
bool tells(const Trial& trial, const std::vector<Objective>& objectives);
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
/// Throws std::runtime_error, which says why there is none.
TrialId best_of(const Outcome& outcome, const BestOf& which);
/// Throws std::runtime_error, which says why the trial has no value.
[[noreturn]] void refuse_value(const Trial& trial);
}  // namespace detail

/// One trial, with its configuration in the program's own type.
template <class Config>
struct TrialResult {
  /// The configuration with which the function made its best report; see Results::schedule(). A field
  /// that is not searched has what Options::config gave the trial's last attempt: also where the run
  /// was gone on with another value since, if a file can have the old one.
  Config config;
  Trial trial;
  std::string text;  ///< what << prints

  /// The best value that it reported. Throws std::runtime_error, which says why, if there is none:
  /// ask `trial.best` first where trials may have failed.
  double value() const {
    if (!trial.best) detail::refuse_value(trial);
    return *trial.best;
  }
  /// The checkpoint of that report, or the last one before it where it came with none
  /// (Trial::best_checkpoint_t says of which report); empty: there is none. As the search names it: a
  /// path that this program sees, or "node N:/path" where node N shares no folder with it.
  /// `.keep_checkpoints` never deletes it.
  std::filesystem::path checkpoint() const { return trial.best_checkpoint; }
  friend std::ostream& operator<<(std::ostream& out, const TrialResult& result) {
    return out << result.text;
  }
};

/// The results of a run. A value.
template <class Config>
class Results {
 public:
  Results(detail::Outcome outcome, const Config& base) : outcome_{std::move(outcome)} {
    const auto configs = detail::all_configs(outcome_.earlier, base);
    for (const auto& trial : outcome_.trials) {
      const auto& unsearched = configs[detail::config_of_attempt(outcome_.earlier, trial)];
      trials_.push_back({configured(unsearched, config_of_best(trial)), trial,
                         detail::describe(trial, outcome_.objective)});
    }
    for (const auto id : outcome_.pareto) {
      front_.push_back(trials_[id]);
      if (outcome_.objectives.empty()) continue;
      auto& [config, trial, text] = front_.back();
      config = configured(std::move(config), config_of_values(trial));
      text = detail::describe_values(trial, outcome_.objectives);
    }
  }

  /// The trial with the best value of the metric in any of its reports; of equals the one with the
  /// lowest id. A trial that failed is not looked at, whatever it had reported, nor are values that
  /// are not finite; a trial that was stopped, or whose last value is nan, may be the best one.
  /// `which` asks otherwise: with Scope::Last the last report counts (`.trial.history.back()` has
  /// it), with `.including_failed` failed trials count too. Throws std::runtime_error, which says
  /// why, with a trial's error, if there is no such trial.
  const TrialResult<Config>& best(const BestOf& which = {}) const {
    return trials_[detail::best_of(outcome_, which)];
  }
  const std::vector<TrialResult<Config>>& trials() const { return trials_; }  ///< all, by id
  /// The trials that no other trial dominates: no other is at least as good in every objective and
  /// better in one. Trials that do not keep to Options::constraints are no part of it. A trial counts
  /// with its last report that has all objectives (Trial::values),
  /// and has the configuration of that report. A trial that failed, has no such report, or has a
  /// value in it that is not finite is not in the front; one that was stopped may be. Ordered by
  /// the first objective, the best first, then by the next ones, then by id. With one objective:
  /// the trials whose best report is as good as best()'s. May be empty.
  const std::vector<TrialResult<Config>>& pareto_front() const { return front_; }
  /// The configurations that led to the best trial's best report, in the order of training,
  /// including those of trials that it took over. A single one if it took over no trial. Throws
  /// like best().
  std::vector<Segment> schedule() const {
    return schedule_to_best(outcome_.trials, detail::best_of(outcome_, {}));
  }
  const std::vector<RungSummary>& rungs() const { return outcome_.rungs; }
  /// What another search can begin with, as its Options::known: the best value of each trial that has
  /// ended, with the configuration that reached it, and the values of all objectives if there are
  /// several. A trial that reported no finite value is in it as NaN, the worst; one that failed or
  /// never reported is not. The other search must have the same metrics and modes, the same constraints
  /// or none, and domains that hold these configurations.
  std::vector<KnownResult<Config>> known() const {
    std::vector<KnownResult<Config>> known;
    for (const auto& each : trials_) {
      const auto& trial = each.trial;
      if (!detail::tells(trial, outcome_.objectives)) continue;
      if (outcome_.objectives.empty())
        known.push_back({.config = each.config,
                         .value = trial.best.value_or(detail::kNoValue),
                         .objectives = {outcome_.objective}});
      else
        known.push_back({.config = configured(each.config, config_of_values(trial)),
                         .values = trial.values,
                         .violation = trial.violation,
                         .objectives = outcome_.objectives});
    }
    return known;
  }
  /// Why the run ended early; empty: every trial was run.
  const std::string& ended_early() const { return outcome_.ended_early; }
  /// SIGINT or SIGTERM, where one came while the run was active. It has ended the run early, as
  /// ended_early() says, unless that was over or ending already.
  std::optional<int> signal() const { return outcome_.signal; }
  /// With which a program can end as `troupe tune` does: 128 + signal() where a signal came (130:
  /// Ctrl-C), else 125 where the cluster ended before the run did, 1 without a best trial (and of
  /// several objectives without a trial in the front), 0.
  int exit_code() const { return outcome_.exit_code(); }
  /// What was shown at the end, without colour.
  const std::string& summary() const { return outcome_.summary; }
  /// The folder with this run's files; empty: none.
  const std::filesystem::path& folder() const { return outcome_.folder; }
  Seconds duration() const { return outcome_.duration; }

 private:
  detail::Outcome outcome_;
  std::vector<TrialResult<Config>> trials_;
  std::vector<TrialResult<Config>> front_;
};

/// What tune::run and tune::resume throw, before anything is begun, where a signal came during an
/// earlier search of this process: whoever presses Ctrl-C wants the program to end, not its next
/// search to begin. That search returned its results as usual, so the program may write them first.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int signal);
  int signal() const { return signal_; }  ///< SIGINT or SIGTERM

 private:
  int signal_ = 0;
};

/// Forgets the signal that came during an earlier search, so that the next tune::run begins: for a program
/// that asks its user how to go on. No effect while a search is active, or where no signal came.
void clear_interrupt();

}  // namespace troupe::tune
