#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <troupe/detail/trial_session.hpp>
#include <troupe/tune/options.hpp>
#include <troupe/tune/results.hpp>

/// What tune::run hands to the part of it that is no template.
namespace troupe::tune::detail {

using troupe::detail::RunInfo;
using troupe::detail::TrialEvent;

/// What an attempt runs.
struct Work {
  Configuration config = {};
  RunInfo info = {};        ///< restore_from: as the search names the checkpoint, not as a node sees it
  std::string marker = {};  ///< a file that the driver has put into the run's folder; empty: there is none
};

/// One place of the search, with the attempt of a trial that runs there, as the thread that runs it sees the search.
class Attempt {
 public:
  virtual ~Attempt() = default;
  /// True once the search wants nothing more of it.
  virtual bool is_over() const = 0;
  /// The gang is there, and the attempt begins. `kill` ends it, and may be called from another thread as long as the attempt
  /// runs. Throws Cancelled if the attempt is over.
  virtual void placed(std::function<void()> kill) = 0;
  /// The function runs on every rank: from here on, a process that dies is the trial's fault.
  virtual void begun() = 0;
  /// Waits for the verdict on a report.
  virtual Verdict judge(const TrialEvent& report) = 0;
  /// After a Stop: what is to begin in the processes of the attempt that ended; none: nothing. Asked once for each Stop.
  virtual std::optional<Work> replacement() = 0;
  /// True between a Stop and the replacement() that has something.
  virtual bool is_replaced() const = 0;
  /// What people should know.
  virtual void say(std::string notice) = 0;
};

/// Runs work from its placement to its end, on a thread of its own. Throws Impossible, CheckpointGone, or what went wrong.
using RunAttempt = std::function<void(const Work& work, Attempt& attempt)>;

/// Everything in Options that does not depend on Config.
struct Plan {
  SearchSpace space = {};
  std::uint64_t trials = 0;
  std::uint64_t samples = 1;
  Objective objective = {};
  std::uint64_t seed = 0;
  SchedulerFactory scheduler = {};
  SearcherFactory searcher = {};
  std::size_t max_concurrent = 0;
  int max_failures = 0;
  int system_retries = 3;
  StopWhen stop = {};
  std::chrono::milliseconds time_budget{0};
  std::chrono::milliseconds stop_grace{0};
  std::string storage = {};
  int workers = 1;
  Show show = Show::Auto;
  /// Throws std::invalid_argument where a field is not the configuration's, or can not take every value of its domain.
  std::function<void(const SearchSpace&)> check_fields = {};
};

/// Throws std::invalid_argument where no gang can ever be asked for with these options.
void check(const Each& each);

/// Runs the search to its end. Blocks.
Outcome search(const Plan& plan, const RunAttempt& run_attempt);

}  // namespace troupe::tune::detail
