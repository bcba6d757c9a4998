#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

/// Since the run began. What tune decides depends on the order of events, never on this; it is recorded and shown.
using Seconds = std::chrono::duration<double>;

///   Pending -> Running -> Terminated   it ran to its end, or to max_t, or to a stop criterion
///      ^          |-----> Stopped      the scheduler, or the end of the run, stopped it
///      |          |-----> Errored      it failed once more than max_failures
///      +--- failed, retried; or lost by the cluster, started again
enum class Status : std::uint8_t { Pending, Running, Terminated, Stopped, Errored };
std::string_view to_string(Status status);

/// One configuration and what became of it. A value.
struct Trial {
  TrialId id = 0;
  Configuration config = {};
  Status status = Status::Pending;
  bool in_flight = false;               ///< given to a gang, or waiting for one to be placed
  std::uint64_t launch = 0;             ///< its last launch's number among all of the run's, from 1
  bool stopping = false;                ///< told to stop, its gang not yet seen to end
  Status outcome = Status::Terminated;  ///< what it will be if its gang ends now without a fault
  int failures = 0;                     ///< that are its own
  int restarts = 0;                     ///< after failures of the cluster, which are not among `failures`
  std::int64_t t = 0;                   ///< its last report's number, from 1
  Metrics last = {};                    ///< the last report
  std::optional<double> best = {};      ///< value of the metric among its reports; a value that is not finite is none
  std::int64_t best_t = 0;
  std::string reason = {};          ///< why it was stopped or finished by the scheduler
  std::string error = {};           ///< of the last failure
  std::string restart_reason = {};  ///< of the last restart: what the cluster lost
  std::string checkpoint = {};      ///< directory that the last report with one named
  std::int64_t checkpoint_t = 0;
  Seconds started{0};  ///< first start
  Seconds ended{0};

  int attempt() const { return failures + restarts + 1; }  ///< of its next launch, or of the one that runs
  bool over() const { return status != Status::Pending && status != Status::Running; }
};

}  // namespace troupe::tune
