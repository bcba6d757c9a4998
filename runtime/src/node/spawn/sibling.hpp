#pragma once

#include <sys/types.h>

namespace troupe::node {

/// Forks a child of this process's parent, in the cgroup of this directory (nullptr or empty: in this process's own;
/// also where it cannot be entered). -> as fork(). Handlers of pthread_atfork are not run.
pid_t fork_sibling(const char* cgroup);

}  // namespace troupe::node
