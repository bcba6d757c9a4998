#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/ref.hpp>
#include <troupe/tune/context.hpp>

#include "plan/plan.hpp"
#include "sweep/fields.hpp"

namespace troupe::launch {

/// What a sweep runs for each trial. Crosses to each rank.
struct TrialProgram {
  std::vector<std::string> command;  ///< {name} stands for the value of a field
  std::vector<Field> fields;         ///< of the trial's configuration
  /// Fields that this trial has not: words and variables that name one are left out.
  std::vector<std::string> left_out;
  Variables environment;  ///< over that of the node
  Variables variables;    ///< over all of it; {name} as in `command`
  std::string directory;
  /// Of a folder that is sent, to be the working directory: its digest, an archive of it, and what
  /// it is called on each node, for all trials.
  std::string workdir;
  std::vector<Ref<std::string>> archive;
  std::string run_id;
  std::string pattern;       ///< of ReportReader
  std::string event_folder;  ///< of ScalarEvents, where fields are put in; empty: none are read
  std::string metric;        ///< that a report has to have
  double cpus = 1;           ///< of each rank
  int per_host = 1;          ///< ranks that each rank of the gang of hosts runs
  double grace_s = 5;        ///< between SIGTERM and SIGKILL
  bool prints =
      false;  ///< what the program prints is passed on; else it is only in the trial's file
};

/// The trainable: runs the program on the ranks of this host, each to its end or until the trial is
/// told to stop, or to end with the search (tune::detail::kToldToEnd), and reports what rank 0's
/// prints. A program that is to end gets SIGTERM, and SIGKILL once the grace is over. Throws where
/// the program of one fails, with its last lines, once those of the others are ended.
void run_trial_program(tune::Context& context, const TrialProgram& program);

}  // namespace troupe::launch
