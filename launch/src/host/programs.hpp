#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "host/program.hpp"
#include "node/limits/memory_kills.hpp"
#include "node/output/line_cutter.hpp"
#include "plan/news.hpp"

namespace troupe::launch {

/// The programs of one host, and the thread that reads what they write and sees them end.
///
///   [running] --ends--> [draining: its pipes, for 200 ms at most] --> [over]
///       |--stop(): SIGTERM to its group; the grace is over: SIGKILL--^
///
/// 1. What a program wrote before it ended is handed out before its end is.
/// 2. At most 4 MiB wait to be taken: then programs wait in their writes, and nothing is lost.
/// 3. A line has at most 1 MiB; a longer one is handed out in pieces that long.
/// 4. Once a program has ended that was told to, its process group is killed.
/// 5. That a program has ended is told at once as an exit, also where nobody takes what it wrote.
///
/// Any thread may call.
class Programs {
 public:
  using Clock = std::chrono::steady_clock;

  /// `memory`: whether a program may have been ended because memory ran out.
  explicit Programs(const std::vector<ProgramSpec>& specs, node::MemoryKills memory = {});
  /// Kills what runs.
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Waits until there is something to tell, at most so long, and hands it out. `with_output`: else
  /// exits alone, while what was written, and the ends behind it, wait.
  HostNews next(std::chrono::milliseconds patience, bool with_output = true);
  /// SIGTERM to each program that runs, SIGKILL to those that still run after `grace`. Returns at
  /// once; may be called again with less.
  void stop(std::chrono::milliseconds grace);
  /// Of those that were started, also once they have ended.
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  struct Running;
  struct Stream;

  void run();
  int poll_once();
  bool read(Running& running, bool to_error);  // -> there may be more at once
  void hand_out(Running& running, bool to_error, bool all);
  void on_ended(Running& running);
  void finish(Running& running);
  std::optional<Clock::time_point> next_deadline() const;
  void at_deadlines(Clock::time_point now);

  std::vector<pid_t> pids_;       // does not change once the thread runs
  std::vector<Running> running_;  // of the thread, as the two below
  node::MemoryKills memory_;
  Clock::time_point memory_looked_;
  os::UniqueFd wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  HostNews news_;            // guarded, as all below
  std::size_t waiting_ = 0;  // bytes in it
  std::size_t left_ = 0;     // programs that are not over
  std::optional<std::chrono::milliseconds> told_to_stop_;
  bool leaving_ = false;

  std::thread thread_;  // last: ends before the rest
};

}  // namespace troupe::launch
