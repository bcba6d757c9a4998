#pragma once

#include <string>

/// How many CPUs a node offers. `told`: NodeOptions::cpus, where 0 means that nobody has said.
/// `usable`: os::usable_cpus() of the node's process.
namespace troupe::node {

/// What was told, else what is usable, and then at least one. A task asks for one CPU unless it says
/// otherwise, and no such task could ever run on a node that offers less. A cgroup may well allow
/// less (`docker run --cpus=0.5`); the task then runs at that speed.
double offered_cpus(double told, double usable);

/// What the node says once, as it starts, where it offers more than is usable without being told to.
/// Empty: it does not.
std::string why_more_cpus_than_usable(double told, double usable);

}  // namespace troupe::node
