#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace troupe::os {

/// Whether this process has more than the calling thread. Costs microseconds: the names are not
/// read.
bool has_other_threads();

/// Names of the threads of this process, from /proc/self/task; the calling one is among them.
std::vector<std::string> thread_names();

/// "3 threads (sweep, sweep, pool-1)"
std::string describe_threads(const std::vector<std::string>& names);

/// For how long the threads of this process have computed so far, all together. Any thread. Costs a
/// call of the kernel.
std::chrono::nanoseconds computed_here();

}  // namespace troupe::os
