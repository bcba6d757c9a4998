#pragma once

#include <string>

namespace troupe::os {

/// Different for each boot of each machine. Empty where /proc does not tell.
std::string boot_id();
/// Boot id and network namespace of this machine: two processes with the same one reach each
/// other's abstract sockets.
std::string machine_id();
/// "mnt:[4026531841]" of this process, for `kind` mnt, net, pid, ...
std::string namespace_id(const std::string& kind);

/// As the kernel tells it, printable or not.
std::string host_name();
/// How many cores this process may use: its affinity mask, and the limit of its cgroup if that is
/// lower.
double usable_cpus();
/// Main memory in bytes: the machine's, or its cgroup's limit if that is lower. 0 where /proc does
/// not tell.
double usable_memory_bytes();

}  // namespace troupe::os
