#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/searcher.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// One rung at the moment, for the summary.
struct RungSummary {
  int bracket = 0;
  int rung = 0;                ///< 0 is the lowest of the bracket
  std::int64_t t = 0;          ///< reports that a trial has made when it is judged here
  std::size_t reached = 0;     ///< trials that were judged here
  std::size_t stopped = 0;     ///< of them, for a value worse than the cutoff
  std::size_t not_finite = 0;  ///< of them, for a value that was nan or infinite
  /// Which the next trial has to meet; none while nobody was judged.
  std::optional<double> cutoff = {};
};

/// What a scheduler sees of the search.
struct Population {
  const std::vector<Trial>& trials;  ///< all that were begun, by id
  std::uint64_t to_come = 0;         ///< configurations that were not begun yet
};

/// Who takes a free place.
struct Begin {};  ///< the next configuration of the searcher
struct Resume {
  TrialId trial = 0;  ///< a paused one
  /// With it; none: from its own checkpoint with its own configuration.
  std::optional<Exploit> exploit = {};
  int workers = 0;               ///< that its gang is to have from now on; 0: as many as it has
  std::string why = {};          ///< a sentence with its numbers; with `exploit` that has it
  std::optional<int> rung = {};  ///< from which it was chosen; then a line says why
};
struct Nobody {};  ///< until the next event
struct Over {};    ///< as Nobody; where nothing runs, the paused trials are given up
using Turn = std::variant<Begin, Resume, Nobody, Over>;

/// Of the paused trials that `may` go on (empty: all may) the one that has trained least, of equals
/// the one that was launched first; nullptr if there is none.
const Trial* furthest_behind(const std::vector<Trial>& trials,
                             const std::function<bool(const Trial&)>& may = {});
/// The reason with which that one goes on.
std::string why_furthest_behind(const Trial& trial);

/// What a scheduler asks of the run that it is used in.
struct SchedulerNeeds {
  bool checkpoints = false;  ///< the function reports checkpoints, and the run has storage
  bool own_search = false;   ///< no other searcher beside it
  bool pauses = false;       ///< trials, at its rungs, until others have come there
  /// What it decides depends on Population::to_come, so that no trials can be added to a run later.
  bool counts_trials = false;
  int workers = 0;                  ///< that a trial's gang begins with; 0: it does not matter
  std::uint64_t least_trials = 1;   ///< that make sense
  std::int64_t first_judged_t = 0;  ///< no trial is judged before this report; 0: it does not say
  /// Fields of the configuration that it changes, and what they may become.
  SearchSpace mutations = {};
};

/// Judges reports, and says who takes a free place. Pure like a Searcher, and used like one.
class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  /// The trial has made report `trial.t`, which `trial.last` and, if it came with one,
  /// `trial.checkpoint` hold already. Reports that were made before, by an attempt that failed
  /// later, do not come here.
  virtual Decision on_report(const Trial& trial, const Population& population) = 0;
  /// The trial is over.
  virtual void on_end(TrialId trial, const Population& population) = 0;
  /// The trial's attempt failed, and it will be launched again from its checkpoint.
  virtual void on_failure(TrialId /*trial*/, const Population& /*population*/) {}
  /// A place is free. Changes nothing of the scheduler unless it answers Resume: a call that
  /// answers otherwise leaves no event, and may be made any number of times. Where it answers
  /// Nobody while nothing runs, the search resumes the paused trial that is furthest behind, so
  /// that nobody waits for ever. This one begins what is to come, then resumes who is furthest
  /// behind.
  virtual Turn on_place(const Population& population);
  /// Why a paused trial that is given up was not resumed; empty: the reason of its pause says it.
  virtual std::string why_left(TrialId /*trial*/) const { return {}; }
  /// The checkpoint `gone`, which the trial was to go on from, is not there any more. No later
  /// decision may name it. -> another trial to go on from; none: the trial goes on from what it had
  /// before.
  virtual std::optional<Exploit> on_checkpoint_gone(const Trial& /*trial*/,
                                                    const std::string& /*gone*/,
                                                    const Population& /*population*/) {
    return std::nullopt;
  }
  /// Checkpoints that a later decision may name. Nobody deletes them as long as they stand here.
  virtual std::vector<std::string> checkpoints() const { return {}; }

  virtual SchedulerNeeds needs() const { return {}; }
  virtual std::vector<RungSummary> rungs() const { return {}; }

  virtual std::string save() const = 0;
  /// Throws std::invalid_argument if another scheduler wrote it.
  virtual void load(std::string_view saved) = 0;
};

using SchedulerFactory =
    std::function<std::unique_ptr<TrialScheduler>(const Objective& objective, std::uint64_t seed)>;

/// Lets every trial run to its end.
SchedulerFactory fifo();

}  // namespace troupe::tune
