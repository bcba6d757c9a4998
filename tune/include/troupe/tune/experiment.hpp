#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/tune/scheduler.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// When a trial counts as one that no longer improves.
struct Plateau {
  std::int64_t reports = 0;  ///< reports with the metric without an improvement; 0: no criterion
  double delta = 0;          ///< smaller improvements do not count
};

/// When to end early, in addition to the scheduler and Options::time_budget. Each criterion is
/// independent; 0 and none mean no criterion.
struct StopWhen {
  // A trial finishes
  std::int64_t reports = 0;  ///< after this many reports
  Plateau plateau = {};      ///< once it no longer improves
  /// Once this long has passed since its first start, at its next report. Where its attempt has run
  /// for that long, too, without one: it is told to end, and ended after Options::stop_grace.
  std::chrono::milliseconds trial_time{0};
  // The run ends
  std::optional<double> reaches = {};  ///< as soon as a trial's metric is this good
  std::int64_t all_reports = 0;        ///< once its trials have made this many reports together
  /// Once this many trials have ended since the best one reported its best; errored trials do not
  /// count. If the best trial fails, the best of the others takes its place.
  std::size_t no_better_trials = 0;
  double cost = 0;               ///< once the sum of `cost_metric` over all reports is this high
  std::string cost_metric = {};  ///< the metric with the cost of a step: seconds, money
};

/// The state of a run that StopWhen uses.
struct RunProgress {
  std::int64_t reports = 0;
  double cost = 0;
  std::size_t no_better = 0;  ///< trials that ended since there is a best one, or since the begin
  std::size_t ended = 0;      ///< trials that ended before the run did, without those that failed
};

/// What caused the failure of an attempt.
enum class Fault : std::uint8_t {
  Trial,  ///< its function threw, or a process that ran it died: counts against max_failures
  /// Its gang did not start, or a node or a connection was lost: not counted, up to system_retries
  /// times in a row without a new report.
  System,
  Final,  ///< a failure that would happen again at every attempt
  /// The checkpoint from which it should continue is gone: not counted. The trial continues from
  /// another or from an earlier checkpoint.
  Checkpoint,
  /// None: the attempt had been told to end, or the run had ended, which ends all attempts.
  Ended,
};

struct ExperimentOptions {
  Objective objective = {};
  std::uint64_t seed = 0;
  int max_failures =
      /// Of one trial, after which it is Errored; a failure is a gang that broke or a function that
      /// threw.
      0;
  int system_retries =
      /// Of one trial: how often in a row, without a new report between, it is started again after
      /// a System fault, before those are failures.
      3;
  StopWhen stop = {};
  /// Of a run with several objectives all of them, `objective` first; else empty.
  std::vector<Objective> objectives = {};
  std::vector<Constraint> constraints = {};  ///< of a run with several objectives
  /// Trials are programs, which report by lines that they print: for the words of errors.
  bool of_programs = false;
};

/// What to run in a gang next.
struct Launch {
  TrialId trial = 0;
  int attempt = 1;
  Configuration config = {};
  std::string checkpoint = {};  ///< to go on from; empty: from the start
  std::int64_t after_t = 0;     ///< the gang's k-th report is the trial's report after_t + k
  std::size_t takeovers = 0;    ///< of the trial, so far
  bool reconfigured = false;    ///< the checkpoint was written with another configuration
  int workers = 0;              ///< of the gang; 0: as the options say
  friend bool operator==(const Launch&, const Launch&) = default;
};
struct Wait {};  ///< nothing to launch until a running trial reports, ends or fails
struct Done {};  ///< nothing runs, and nothing is left to launch
using Next = std::variant<Launch, Wait, Done>;

/// Where a rank of a gang runs: the name of its node, and its number among the ranks that the
/// search has on that node.
struct Place {
  std::string node = {};
  int slot = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// One thing that happened, as the journal holds it: enough to make every decision again.
struct Event {
  enum class Kind : std::uint8_t {
    Launched,  ///< next() or relaunch() handed it out: config, attempt, checkpoint, t after which it goes on; decision:
    ///< of one that was paused, GoOn with the reason why it is resumed, or the Exploit that it resumes with
    Started,  ///< its gang was placed
    /// T, metrics, checkpoint, config, decision; only reports that count, repetitions leave no
    /// event.
    Reported,
    /// StopWhen::trial_time is over, and the attempt is told to end without a report of its own;
    /// decision: Finish with the reason.
    Overdue,
    Ended,   ///< the function returned on all ranks; status tells whether it is paused
    Failed,  ///< text: how; fault: what it was counted as; status tells whether it is tried again; decision: Exploit
             ///< where its checkpoint is gone and it takes over another
    /// Its gang is gone without a fault of its own: the run was interrupted and taken up again.
    Requeued,
    Dropped,  ///< it was paused, and the search is over without it; text: why
    Closed,   ///< no further launches; text: why
  };
  Kind kind = Kind::Closed;
  TrialId trial = 0;
  int attempt = 0;
  std::int64_t t = 0;
  std::size_t takeovers = 0;  ///< of Launched: of the trial, by then
  int workers = 0;            ///< of Launched: as there
  Configuration config = {};  ///< of Reported: what the attempt ran with; not in the journal
  Metrics metrics = {};
  std::string checkpoint = {};
  std::string text = {};
  Fault fault = Fault::Trial;
  Decision decision = {};
  std::vector<Place> places = {};  ///< of Started: of each rank; empty: unknown
  Seconds now{0};
};

/// A search as a pure state machine: events in, what to launch and when to stop out. No clock, no
/// thread, no file, no process. A function of (options, searcher, scheduler, order of events, and
/// with StopWhen::trial_time their times): the same events make the same decisions, so applying a
/// journal again gives the state in which it was written. Used by one thread.
class Experiment {
 public:
  /// Called with every event once it is applied, before the call that made it returns: what the
  /// caller then answers to a gang can be in the journal already.
  using Observer = std::function<void(const Event& event, const Trial* trial)>;

  /// Throws std::invalid_argument for options that can not be: no metric named, negative numbers.
  Experiment(ExperimentOptions options, std::unique_ptr<Searcher> searcher,
             std::unique_ptr<TrialScheduler> scheduler);

  void observe(Observer observer) { observer_ = std::move(observer); }

  /// What a free gang should run. Retries come first, then what the scheduler says.
  Next next(Seconds now);
  /// After a report was answered Exploit that is not in turn: the trial's next attempt, to begin in
  /// the same step in place of the one that reported.
  Launch relaunch(TrialId trial, Seconds now);
  /// `places` are recorded, and decide nothing.
  void started(TrialId trial, Seconds now, std::vector<Place> places = {});
  /// The trial's report number t. A t that was reported before (by an attempt that failed) changes
  /// nothing and is no event: it is answered GoOn, or Stop once the run is closed. After any answer but
  /// GoOn the attempt is to end, which ended() or failed() tells.
  Decision report(TrialId trial, std::int64_t t, const Metrics& metrics,
                  const std::string& checkpoint, Seconds now);
  /// Ends a trial that runs, was not told to end, and has had its StopWhen::trial_time, also in this
  /// attempt: that is to end, which ended() or failed() tells. A trial with reports of the metric is Terminated
  /// then, one without is Errored. -> whether it is one; else nothing changes.
  bool end_overdue(TrialId trial, Seconds now);
  void ended(TrialId trial, Seconds now);
  /// The attempt failed. Tried again while there are failures left, or restarts for a fault of the
  /// system, unless the fault is Final. A trial that was stopping is Stopped (or Terminated, or
  /// Paused), not failed. One whose checkpoint is gone takes over another, or goes on from the newest
  /// of its checkpoints before that (Trial::earlier), or from its start; a notice says which.
  void failed(TrialId trial, const std::string& why, Fault fault, Seconds now);
  /// No further launches, and every report is answered Stop. A trial that fails or is launched but
  /// not started is then Stopped. Does nothing if closed.
  void close(const std::string& why, Seconds now);

  /// Applies an event of a journal again; the observer is not called. Throws std::invalid_argument,
  /// saying what differs, where this experiment decides otherwise than the journal's did.
  void apply(const Event& event);
  /// After a journal was applied: what ran when it ended is launched again, before all else and in
  /// the order of its last launches, from its last checkpoint or from the start, without counting a
  /// failure; what was told to stop is over.
  void requeue_running(Seconds now);

  const ExperimentOptions& options() const { return options_; }
  const std::vector<Trial>& trials() const { return trials_; }  ///< by id
  /// The candidate (is_candidate()) with the best value so far, the one with the lowest id of
  /// equals; nullptr if there is none.
  const Trial* best() const;
  /// What the searcher threw as it was told how a trial ended, which is over all the same; once.
  std::exception_ptr take_thrown() { return std::exchange(thrown_, nullptr); }
  /// Checkpoints that an attempt goes on from or may have to: of trials that are not over, of
  /// donors that were decided on and of those that the scheduler may still name. Whoever deletes
  /// checkpoints leaves these. Sorted.
  std::vector<std::string> pinned() const;
  /// What people should know of the search, each once, kMostNotices at most.
  const std::vector<std::string>& notices() const { return notices_; }
  static constexpr std::size_t kMostNotices = 20;
  /// Trials given to a gang, or waiting for one to be placed.
  std::size_t in_flight() const { return in_flight_; }
  bool closed() const { return closed_; }
  const std::string& why_closed() const { return why_closed_; }
  bool reached_goal() const;  ///< a trial's metric is as good as `stop.reaches`
  bool ended_as_asked() const { return ended_as_asked_; }  ///< by what its StopWhen says
  std::vector<RungSummary> rungs() const { return scheduler_->rungs(); }
  const Searcher& searcher() const { return *searcher_; }
  const TrialScheduler& scheduler() const { return *scheduler_; }

  /// The whole state as JSON: two experiments that will decide alike have the same. Cost:
  /// proportional to all reports with the metric, some ten bytes for each.
  std::string save() const;
  /// Takes up what save() wrote, in an experiment without events. Throws std::invalid_argument
  /// where the text is no state, or one of another search or scheduler; the experiment is of no use
  /// then.
  void load(std::string_view saved);

 private:
  Trial& known(TrialId trial);
  void tell(const Event& event);
  Population population() const;
  std::optional<TrialId> chosen(Decision& resumed);
  TrialId begin(Configuration config);
  Launch launch(Trial& trial, const Decision& resumed, Seconds now);
  Stop run_ended() const;
  Decision decide(const Trial& trial, Seconds now);
  /// Shuts the run where its StopWhen says so. -> it did.
  bool end_as_asked(TrialId trial, Seconds now);
  void note(Trial& trial, const Event& report);
  void note_checkpoint(Trial& trial, const Event& report);
  void act_on(Trial& trial, const Decision& decision);
  void take_over(Trial& trial, const Exploit& exploit);
  Decision go_on_without_checkpoint(Trial& trial);
  void undo_takeover_of(const std::string& gone, Trial& trial);
  void take_back_idle_takeover(Trial& trial);
  void go_back(Trial& trial);
  void replace_best();
  void add_notice(std::string notice);
  Fault count(Trial& trial, const std::string& why, Fault fault, Seconds now);
  void take_back(Trial& trial);
  void judge_end(Trial& trial);
  void conclude(Trial& trial, Seconds now);
  void finish(Trial& trial, Status status, Seconds now);
  void finish_with_run(Trial& trial, Seconds now);
  void requeue(TrialId trial, Seconds now);
  void drop_paused(Seconds now);
  void drop(Trial& trial, Seconds now);
  void shut(const std::string& why, Seconds now);
  void take_up(std::string_view saved);
  void apply_launch(const Event& event);
  void apply_report(const Event& event);
  void apply_overdue(const Event& event);
  void apply_failure(const Event& event);
  void apply_drop(const Event& event);

  ExperimentOptions options_;
  std::unique_ptr<Searcher> searcher_;
  std::unique_ptr<TrialScheduler> scheduler_;
  const SchedulerNeeds needs_;
  Observer observer_;
  std::vector<Trial> trials_;
  std::deque<TrialId> again_;  // Pending, to be launched before new ones
  std::vector<std::string> notices_;
  std::size_t in_flight_ = 0;
  std::uint64_t launches_ = 0;
  std::optional<TrialId> best_;
  bool exhausted_ = false;
  RunProgress progress_;
  bool closed_ = false;
  bool ended_as_asked_ = false;
  std::string why_closed_;
  std::exception_ptr thrown_;
};

}  // namespace troupe::tune
