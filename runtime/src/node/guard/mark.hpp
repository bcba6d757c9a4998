#pragma once

#include <cstdint>

#include <sys/types.h>

namespace troupe::node {

/// Every process that a node starts is marked, and so is, by inheritance, every process that user
/// code starts from there: by its limit of file locks (RLIMIT_LOCKS), a number that Linux keeps for
/// each process and has not looked at since 2.4.25. A session of its own, an exec, an empty
/// environment or another user do not change it, and no right is needed to lower it. A node's limit
/// is 1 below that of its guardian; that of worker process k, and of what user code starts there, k
/// below that of its node.
void lower_mark(std::uint64_t by);

/// How far below this process's mark that of a child is; 0: it has none, or is gone.
std::uint64_t mark_of_child(pid_t child);

}  // namespace troupe::node
