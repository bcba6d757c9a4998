#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// A run at one moment, as people are shown it. A value: what is drawn is a function of it.
struct Overview {
  struct Row {
    TrialId trial = 0;
    Status status = Status::Pending;
    std::int64_t t = 0;
    std::optional<double> last = {};
    std::optional<double> best = {};
    std::int64_t best_t = 0;
    std::vector<std::string> values = {};  ///< in the order of `fields`
    /// Why it was stopped or paused, its error, or whom it took over.
    std::string note = {};
  };

  Objective objective = {};
  std::size_t front_size = 0;           ///< of a run with several objectives
  std::vector<std::string> front = {};  ///< its first kMostOfFront members, as text
  Seconds elapsed{0};
  std::array<std::size_t, kStatuses> by_status{};  ///< trials, by Status
  std::vector<std::string> fields = {};            ///< the searched ones
  std::optional<Row> best = {};
  std::vector<Row> rows = {};
  std::vector<Row> errored = {};   ///< at most kMostErrors of them
  std::size_t ended_with_run = 0;  ///< trials that were stopped since the run was
  std::size_t restarts = 0;        ///< of trials, after failures of the cluster
  struct Restarted {
    TrialId trial = 0;
    std::string why = {};
  };
  Restarted restarted = {};                   ///< the last such trial by id
  std::size_t ranks = 0;                      ///< of all gangs that run
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
  std::string folder = {};                ///< of the results; empty: none

  static constexpr std::size_t kMostErrors = 5;
  static constexpr std::size_t kMostOfFront = 10;
  std::size_t count(Status status) const { return by_status[static_cast<std::size_t>(status)]; }
  std::size_t trials() const;
};

/// The rows: first the trials that run or wait for their gang, then the ones that ended last, at
/// most `most_rows`. `ranks`: of a trial's gang, where no scheduler has said another size. Cost:
/// O(trials).
Overview overview_of(const Experiment& experiment, Seconds now, std::size_t most_rows,
                     int ranks = 1);

}  // namespace troupe::tune
