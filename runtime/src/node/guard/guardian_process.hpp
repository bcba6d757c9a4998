#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::node {

/// What a node writes to its guardian, one record at a time; never split, since it is shorter than PIPE_BUF.
struct GuardianRecord {
  enum What : std::int32_t { Add, Remove, Sweep };
  std::int32_t what;
  std::int32_t group;  ///< of processes; of a Sweep: the number of a cgroup
  std::uint64_t process;
};

/// The guardian's own main: reads records until the pipe's other end is gone, then kills, then exits this process.
[[noreturn]] void run_guardian(int pipe, const std::string& cookie, const std::string& cgroup);

/// SIGKILL to every process whose environment has all "NAME=value" of one of the lists, other than this one, until a
/// look at /proc finds none or `rounds` are over. -> whether none was left. Cost: one read per process of the machine
/// and round.
bool kill_marked(const std::vector<std::vector<std::string>>& any_of, int rounds);

}  // namespace troupe::node
