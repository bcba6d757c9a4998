#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "output/in_use.hpp"

namespace troupe::tune {

/// A run at one moment, as people are shown it. A value: what is drawn is a function of it.
struct Overview {
  struct Row {
    TrialId trial = 0;
    Status status = Status::Pending;
    /// "unfinished" or "unstarted" of a trial that the end of the run stopped; else empty.
    std::string_view ended_with_run = {};
    std::int64_t t = 0;
    std::optional<double> last = {};
    std::optional<double> best = {};
    std::int64_t best_t = 0;
    std::vector<std::string> values = {};  ///< in the order of `fields`
    /// Why it was stopped or paused, its error, or whom it took over.
    std::string note = {};
    std::size_t alike = 0;  ///< of `errored`: further trials with the same cause
  };

  Objective objective = {};
  std::vector<Objective> objectives = {};  ///< where there are several; else empty
  std::size_t front_size = 0;              ///< of a run with several objectives
  std::vector<std::string> front = {};     ///< its first kMostOfFront members, as text
  std::size_t beyond_limits = 0;  ///< trials with values that do not keep to the constraints
  std::string nearest =
      {};  ///< of these the one with the lowest violation, as text, and how far it is
  Seconds elapsed{0};
  /// Trials, by Status, without those that the end of the run stopped.
  std::array<std::size_t, kStatuses> by_status{};
  std::size_t unfinished = 0;            ///< trials, by Trial::is_unfinished()
  std::size_t unstarted = 0;             ///< trials, by Trial::is_unstarted()
  std::uint64_t not_begun = 0;           ///< trials that the end of the run was before
  std::vector<std::string> fields = {};  ///< the searched ones
  std::optional<Row> best = {};
  bool have_all_failed = false;      ///< the trials that reported a finite value
  std::string best_checkpoint = {};  ///< Trial::best_checkpoint of the best one; empty: it has none
  std::int64_t best_checkpoint_t = 0;
  std::vector<Row> rows = {};
  /// The first trial of each cause, of at most kMostErrors causes.
  std::vector<Row> errored = {};
  std::size_t restarts = 0;  ///< of trials, after failures of the cluster
  struct Restarted {
    TrialId trial = 0;
    std::string why = {};
  };
  Restarted restarted = {};          ///< the last such trial by id
  std::size_t ranks = 0;             ///< of all gangs that run, where `in_use` does not say
  std::optional<InUse> in_use = {};  ///< none: nobody knows
  std::optional<std::uint64_t> to_come = {};  ///< trials that were not begun; none: nobody knows
  /// Until the last trial is over, if the coming ones take as long as those that are over: a guess.
  std::optional<Seconds> left = {};
  std::vector<RungSummary> rungs = {};
  std::size_t takeovers = 0;  ///< of one trial's checkpoint by another trial
  std::size_t pauses = 0;
  /// That led to the best trial's best report; empty: it never changed.
  std::vector<Segment> schedule = {};
  std::vector<std::string> notices = {};  ///< what people should know
  std::string ended_early = {};           ///< why; empty: it did not
  bool may_go_on = false;                 ///< it was cut short
  bool is_abandoned = false;              ///< nobody runs it any more: no trial runs
  /// What people do to go on with the run: a command of `troupe tune`, or of a program's own run more
  /// than to set .resume. Empty: nothing more.
  std::string how_to_go_on = {};
  std::string folder = {};  ///< of the results; empty: none

  static constexpr std::size_t kMostErrors = 5;
  static constexpr std::size_t kMostOfFront = 10;
  std::size_t count(Status status) const { return by_status[static_cast<std::size_t>(status)]; }
  std::size_t trials() const;
  bool has_several_objectives() const { return !objectives.empty(); }
  /// No trial reported a value, and most of those that ran failed: what made them so is in the program or
  /// its options.
  bool has_failures_alone() const {
    return !best && !have_all_failed && 2 * count(Status::Errored) > trials() - unstarted;
  }
};

/// A trial's status, for people and for other programs. `is_abandoned`: nobody runs the run any
/// more, so that a trial which runs by its files was interrupted.
std::string_view status_text(Status status, bool is_abandoned);
/// ending_of() the trial, and "interrupted" as above.
std::string_view status_text(const Trial& trial, bool is_abandoned);
std::string_view status_text(const Overview::Row& row, bool is_abandoned);

/// The rows: first the trials that run or wait for their gang, then the ones that ended last, at
/// most `most_rows`. `ranks`: of a trial's gang, where no scheduler has said another size. Cost:
/// O(trials).
Overview overview_of(const Experiment& experiment, Seconds now, std::size_t most_rows,
                     int ranks = 1);

/// Trials that the end of the run was before; 0 while it goes on.
std::uint64_t not_begun(const Experiment& experiment);

/// Nothing is left to run.
bool is_over(const Experiment& experiment, const Overview& overview);

}  // namespace troupe::tune
