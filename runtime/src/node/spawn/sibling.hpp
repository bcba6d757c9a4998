#pragma once

#include <sys/types.h>

namespace troupe::node {

/// Forks a child of this process's parent. -> as fork(). Handlers of pthread_atfork are not run.
pid_t fork_sibling();

}  // namespace troupe::node
