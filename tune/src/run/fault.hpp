#pragma once

#include <exception>

#include <troupe/errors.hpp>
#include <troupe/tune/experiment.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

/// Whose fault it is that an attempt ended with `failure`. `begun`: the function ran on all ranks.
///
/// The system's are: the connection to the cluster or to a process was lost, a node went away with
/// a rank, a worker process could not be started, and, before the function began, one that somebody
/// killed, and a checkpoint that was lost or found no memory on its way. A process that ends by
/// itself (a segmentation fault, an exit) is the program's doing whenever it does; so is one that
/// is killed while the function runs, since that is how a machine without memory ends the trial
/// that took it.
Fault fault_of(const Failure& failure, bool begun);

/// The last event of a trial whose attempt threw that.
GangEvent failure_event(TrialId trial, const std::exception_ptr& thrown, bool begun);
/// The same of a trial whose function ran on a thread of this process. Whatever it throws is the
/// trial's: no cluster runs it, and what it passes on of one that its program uses is its own
/// failure, as it is of a function in a gang.
GangEvent failure_event_here(TrialId trial, const std::exception_ptr& thrown);
/// The last event of a trial that Launcher::end() ended.
GangEvent ended_by_search(TrialId trial);

}  // namespace troupe::tune
