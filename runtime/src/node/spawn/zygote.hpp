#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::node {

/// The environment variable that tells troupe::init in a fresh process that it is a zygote
/// ("zygote:FD") or, where a zygote cannot fork, one worker process ("worker:FD"). Removed from the
/// environment once read.
inline constexpr const char* kBootVariable = "TROUPE_BOOT";

/// Serves as zygote on the socket `control` until its other end is gone; then exits this process.
/// Returns only in a worker process that was forked from here, with the socket to its node (the
/// child of the node, not of the zygote: CLONE_PARENT). Before the fork it checks that this process
/// has one thread; where it has more it answers so, and the node starts worker processes by exec
/// instead.
int serve_zygote(int control);

}  // namespace troupe::node
