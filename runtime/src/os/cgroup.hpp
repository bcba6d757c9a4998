#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/unique_fd.hpp"

namespace troupe::os {

/// Limits that cgroups (version 1 or 2) set on this process; nullopt: none.
std::optional<double> cgroup_cpu_limit();
std::optional<std::uint64_t> cgroup_memory_limit();

/// What a memory cgroup allows and what of it is taken; file cache is not, since it goes when memory is needed.
struct MemoryCgroup {
  std::string directory;
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
};
/// Of this process's cgroup and those above it the one that leaves least; nullopt: none has a limit.
std::optional<MemoryCgroup> tightest_memory_cgroup();

/// Directories of this process's own cgroup that count what its memory does; empty: there is none.
struct MemoryCgroups {
  std::string version_2 = {};
  std::string version_1 = {};
};
MemoryCgroups own_memory_cgroup();

/// A node's cgroup, locked (flock) as long as the node lives; one whose lock is free is of a dead node.
struct NodeCgroup {
  std::string directory = {};  // empty: none
  UniqueFd lock = {};
};
/// A cgroup v2 directory below this process's own, for one life of a node, made now: where it may be made and has a
/// cgroup.kill (Linux 5.14), and is ours to use: delegated by systemd, owned by this user, or the root of a container.
/// Empty where any of that is lacking: then the guardian alone ends what is left behind. Removes those that dead nodes
/// left there without a process, as where a guardian was killed.
NodeCgroup make_node_cgroup(const std::string& cookie);

/// Below the node's, for one worker process at a time. Empty: there is none, as for number 0.
std::string process_cgroup(const std::string& node_cgroup, std::int32_t number);
bool is_cgroup(const std::string& directory);
/// It has no members, nor has one below it, there is none below it, and it is not frozen.
bool is_untouched_cgroup(const std::string& directory);

/// SIGKILL to every member of the directory and of those below it, whatever sessions and groups they are in.
void kill_cgroup(const std::string& directory);
/// Removes the directory, if it has no members and none below it. -> whether it is gone.
bool remove_empty_cgroup(const std::string& directory);
/// Removes the directory and those below it, which have no members any more. -> whether it is gone, by whomever: the
/// guardian of a killed node and the next node may both be at it.
bool remove_cgroup(const std::string& directory);

}  // namespace troupe::os
