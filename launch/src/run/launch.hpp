#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/cluster.hpp>
#include <troupe/options.hpp>

#include "growth/grow_after.hpp"
#include "plan/gang_size.hpp"
#include "plan/plan.hpp"
#include "run/printer.hpp"

namespace troupe::launch {

/// Exit statuses of `troupe run` that are not the program's: as those of env(1) and timeout(1).
inline constexpr int kTimedOut = 124, kTroupeFailed = 125;

/// What `troupe run` is told.
struct LaunchOptions {
  std::vector<std::string> arguments;  ///< the program and its arguments
  GangSize size;
  bool size_given = false;
  int per_node = 0;      ///< ranks on each node, each node's together; 0: as they fit
  double cpus = -1;      ///< of each rank; -1: 1, or this machine's cores shared out
  double gpus = 0;       ///< of each rank
  double memory_gb = 0;  ///< of each rank
  std::vector<std::pair<std::string, std::string>> labels;
  Strategy strategy = Strategy::Pack;
  int max_restarts = 0;
  /// An elastic gang with restarts grows once there was room for more ranks for so long; none: never.
  std::optional<double> grow_after_s = kGrowAfterS;
  double timeout_s = 0;         ///< for all of it; 0: none
  double grace_s = 1.5;         ///< between SIGTERM and SIGKILL
  Variables variables;          ///< --env
  bool own_environment = true;  ///< ranks have the driver's environment
  std::string directory;        ///< working directory of the ranks
  PrinterOptions output;
  bool isolate_gpus = false;
  std::string workdir;        ///< folder that is sent to be the working directory; empty: none
  std::string attached_file;  ///< file that is sent: $TROUPE_ATTACHED_FILE names it; empty: none
  std::string result_file;    ///< what rank 0 leaves in $TROUPE_RESULT_FILE comes here; empty: none
  std::string summary_file;   ///< how it ended, as JSON; empty: none
};

/// Runs a program as a gang, again where it fails and restarts are left, prints what its ranks print
/// and, on standard error, how it ended. Uses the session `cluster` of this process. -> the exit
/// status: the program's own, that of the rank that failed first, 128 + the signal that ended it or
/// that this process got, kTimedOut. Throws troupe::Error where there is no place for it, ...
int launch(const LaunchOptions& options, Cluster& cluster);

/// CPUs of each rank on this machine alone, where nobody said: its cores shared out, at least 1.
double cpus_of_ranks_here(int ranks, double cores);

}  // namespace troupe::launch
