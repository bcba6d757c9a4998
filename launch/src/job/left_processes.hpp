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
  /// SIGKILL to each child of this process, and to what each leaves in turn, until none is there or
  /// the time is over. -> how many run. Blocks that long. No program may run.
  static std::size_t kill_all(std::chrono::milliseconds limit);

 private:
  static bool runs(pid_t child);

  std::set<pid_t> asked_;
};

}  // namespace troupe::launch
