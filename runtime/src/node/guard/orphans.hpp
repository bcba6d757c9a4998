#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include <sys/types.h>

namespace troupe::node {

/// From now on the kernel gives every descendant of this process whose parent has ended to the
/// first thread of this process, as a child.
void adopt_orphans();

/// The children of this process's first thread, to which the kernel gives orphans, with those that
/// have ended and are not reaped. A child that becomes this process's own meanwhile may be missed:
/// the end of its former parent is another signal, and another look. Cost: one read of /proc.
std::vector<pid_t> first_thread_children();

/// SIGKILL to those children of this process's first thread for which `is_orphan` says so. -> how
/// many there are, with those that have ended and are not reaped. Each that ends may leave children
/// of its own to this process. Cost: one read of /proc.
std::size_t kill_orphans(const std::function<bool(pid_t child)>& is_orphan);

/// Kills and reaps all of its marked children (see mark.hpp), until there are none or the time is
/// over.
void end_children(std::chrono::milliseconds limit);

}  // namespace troupe::node
