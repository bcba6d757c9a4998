#pragma once

#include <cstdint>
#include <string>

namespace troupe::store {

/// How much more memory this process may use, and who says so.
struct MemoryRoom {
  std::uint64_t available = 0;
  std::uint64_t limit = 0;
  std::string who = {};  ///< "this machine", "the cgroup /sys/fs/cgroup/job (memory.max)"
};

/// The least of what the machine has and what the cgroups of this process leave. File cache counts
/// as available, shared memory does not. Reads a few files of /proc and /sys: about 0.1 ms.
MemoryRoom memory_room();

/// "the cgroup /x (memory.max) has 12.0 MiB left of 64.0 MiB"
std::string describe(const MemoryRoom& room);

}  // namespace troupe::store
