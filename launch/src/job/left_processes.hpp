#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <vector>

#include <sys/types.h>

namespace troupe::launch {

/// The processes that programs of this process have started and left: one whose parent has ended
/// becomes a child of this process, whatever its session, group or environment. Made before the
/// first program is started. At most one in a process; used by one thread. Where the kernel tells
/// no children (CONFIG_PROC_CHILDREN), it finds none.
class LeftProcesses {
 public:
  LeftProcesses();

  /// Reaps those that have ended. `programs`: children of this process that others reap.
  void reap(const std::vector<pid_t>& programs);
  /// SIGTERM to each that has not had it yet, and reaps those that have ended. -> how many run.
  std::size_t ask_to_end(const std::vector<pid_t>& programs);
  struct Killed {
    std::size_t outside = 0;  ///< that ran outside `group`, each counted once
    std::size_t running = 0;  ///< that have not ended within the limit
  };
  /// SIGKILL to each child of this process, and to what each leaves in turn, until none is there or
  /// the time is over. Blocks that long. No program may run. `group`: the process group of a program
  /// that has ended, which has had SIGKILL already: whether its processes still run here is chance.
  static Killed kill_all(std::chrono::milliseconds limit, pid_t group);

 private:
  static bool runs(pid_t child);

  std::set<pid_t> asked_;
};

}  // namespace troupe::launch
