#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::os {

/// Limits that cgroups (version 1 or 2) set on this process; nullopt: none.
std::optional<double> cgroup_cpu_limit();
std::optional<std::uint64_t> cgroup_memory_limit();
/// Of processes and threads together.
std::optional<std::uint64_t> cgroup_process_limit();

/// What a memory cgroup allows and what of it is taken; file cache is not, since it goes when
/// memory is needed.
struct MemoryCgroup {
  std::string directory;
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
};
/// Of this process's cgroup and those above it the one that leaves least; nullopt: none has a
/// limit.
std::optional<MemoryCgroup> tightest_memory_cgroup();

/// Directories of this process's own cgroup that count what its memory does; empty: there is none.
struct MemoryCgroups {
  std::string version_2 = {};
  std::string version_1 = {};
};
MemoryCgroups own_memory_cgroup();

}  // namespace troupe::os
