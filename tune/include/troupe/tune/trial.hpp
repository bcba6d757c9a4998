#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/trainable.hpp>
#include <troupe/tune/decision.hpp>
#include <troupe/tune/lineage.hpp>

namespace troupe::tune {

/// Time since the run began. It is recorded and shown. Decisions depend on the order of events, not
/// on time, except by StopWhen::trial_time.
using Seconds = std::chrono::duration<double>;

///   Pending -> Running -> Terminated   it ran to its end, or to max_t, or to a stop criterion
///    ^    ^       |-----> Stopped      the scheduler, or the end of the run, stopped it
///    |    |       |-----> Errored      it failed once more than max_failures
///    |    |       |-----> Paused       the scheduler paused it
///    |    |                  |
///    |    +------------------+         resumed
///    +--- failed, retried; or lost by the cluster, started again
enum class Status : std::uint8_t { Pending, Running, Terminated, Stopped, Errored, Paused };
inline constexpr std::size_t kStatuses = 6;
std::string_view to_string(Status status);

/// The value of the metric in one report.
struct Observation {
  std::int64_t t = 0;  ///< after a takeover it goes on from the donor's, so it may go back
  double value = 0;
};

/// A checkpoint that a trial had before its last one.
struct EarlierCheckpoint {
  std::string checkpoint = {};
  std::int64_t t = 0;         ///< the report that came with it
  std::size_t takeovers = 0;  ///< of the trial, by then
};

/// One configuration and what became of it. A value.
struct Trial {
  TrialId id = 0;
  Configuration config = {};  ///< of the attempt that runs or ran last, or of the next one
  Status status = Status::Pending;
  bool in_flight = false;  ///< given to a gang, or waiting for one to be placed
  int attempt = 0;         ///< number of its last launch, from 1
  /// Its last launch's number among all of the run's, from 1; 0: it is to be launched with a new one.
  /// An attempt that the end of the driver interrupted keeps its number when it is launched again.
  std::uint64_t launch = 0;
  /// Its attempt was told to end, and its gang was not yet seen to.
  bool stopping = false;
  Status outcome = Status::Terminated;  ///< what it will be if its gang ends now without a fault
  bool has_started = false;
  bool ended_with_run = false;  ///< stopped since the run was, and by no scheduler
  /// Its attempt ends, and the next one is to begin in the same step.
  bool replaced = false;
  /// Its attempt before the last one failed, and it has not reported since.
  bool retried = false;
  /// Its attempt goes on from before its last report, and has made no new one.
  bool repeating = false;
  int failures = 0;  ///< that are its own
  /// After failures of the cluster, which are not among `failures`.
  int restarts = 0;
  int fruitless_restarts = 0;  ///< of them, those since its last report
  int pauses = 0;
  /// Its last report's number, from 1; after a takeover the donor's.
  std::int64_t t = 0;
  Metrics last = {};  ///< the last report
  /// Its reports with the metric, in the order in which they were made.
  std::vector<Observation> history = {};
  /// Value of the metric among its reports; a value that is not finite is none.
  std::optional<double> best = {};
  std::int64_t best_t = 0;
  /// How many trials had ended, without those that failed, when it made its best report.
  std::size_t ended_before_best = 0;
  std::size_t best_takeovers = 0;  ///< how many of its takeovers came before its best report
  /// Of its best report; where that came without one, the last that the trial had before it: of an
  /// earlier report, or of a donor that it had taken over. Empty: it had none by then.
  std::string best_checkpoint = {};
  /// The report that came with `best_checkpoint`; where a later report of the trial names the same
  /// path, and so has written over it, that one.
  std::int64_t best_checkpoint_t = 0;
  /// Of a run with several objectives: the value of each in its last report that has them all (and
  /// the metrics of all constraints), which may be not finite; empty: no report had.
  std::vector<double> values = {};
  double violation = 0;  ///< of the constraints in that report: Constraint::violation_of, summed up
  std::int64_t values_t = 0;
  std::size_t values_takeovers = 0;  ///< how many of its takeovers came before that report
  std::string reason = {};           ///< why it was stopped, paused or finished by the scheduler
  std::string error = {};            ///< of the last failure
  std::string restart_reason = {};   ///< of the last restart: what the cluster lost
  /// What its next attempt goes on from: of its last report with one, or of a donor.
  std::string checkpoint = {};
  std::int64_t checkpoint_t = 0;
  /// What the trial goes on from where `checkpoint` turns out to be gone, the newest last: the last
  /// kMostEarlier, of which best_checkpoint is one where it is earlier. Some may be gone as well.
  /// Empty once the trial is over.
  std::vector<EarlierCheckpoint> earlier = {};
  static constexpr std::size_t kMostEarlier = 4;
  int workers = 0;  ///< of its gang, where a scheduler said so; 0: as the options say
  std::string launched_from = {};  ///< the checkpoint that its last attempt was given
  std::vector<Takeover> takeovers = {};
  Seconds started{0};        ///< first start
  Seconds attempt_began{0};  ///< the start of its last attempt
  Seconds ended{0};

  bool over() const {
    return status == Status::Terminated || status == Status::Stopped || status == Status::Errored;
  }
  /// The end of the run stopped the trial after it had started; no scheduler did.
  bool is_unfinished() const { return status == Status::Stopped && ended_with_run && has_started; }
  /// The run ended before the trial had started.
  bool is_unstarted() const { return status == Status::Stopped && ended_with_run && !has_started; }
};

/// Whether the trial may be the best one or in the Pareto front: it reported a finite value of the
/// metric, and it did not fail. One whose later reports were not finite may.
inline bool is_candidate(const Trial& trial) {
  return trial.best && trial.status != Status::Errored;
}

/// The word for how a trial ended, or for what it is now. Summaries, tables, files, MLflow and the
/// HTML report show and count trials by it. "unfinished": Trial::is_unfinished(); "unstarted":
/// Trial::is_unstarted(); else the word of the trial's status, so that "stopped" is a trial that the
/// scheduler stopped.
std::string_view ending_of(const Trial& trial);

}  // namespace troupe::tune
