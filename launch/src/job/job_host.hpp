#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>
#include <unistd.h>

#include "host/programs.hpp"
#include "job/job.hpp"
#include "job/job_log.hpp"
#include "job/left_processes.hpp"
#include "workdir/workdir.hpp"

namespace troupe::launch {

/// The detached actor that runs a job's program, passes what it prints to its own log, and knows
/// how it ended: it stays until the job is forgotten. Its program ends with it.
///
///   [running] --its program ends--> [clearing: what the program has left] --none of that runs--> [over]
///       |--stop(): SIGTERM to all; the grace is over: SIGKILL to all--^
///
/// Once it is over, its resources are others', and only what it knows stays: here, and with the head
/// in short, where it outlives the node.
///
/// What a program has left runs on for the rest of the grace where the job was stopped, and is
/// killed at once where the program has ended by itself, which the log and the list of jobs then
/// tell.
class JobHost {
 public:
  static constexpr std::string_view troupe_label = "troupe job";

  /// `archive`: of the folder that is sent; empty where there is none.
  JobHost(JobOrder order, const std::string& archive);
  ~JobHost();
  JobHost(const JobHost&) = delete;
  JobHost& operator=(const JobHost&) = delete;

  JobInfo info() const;
  /// SIGTERM to the program's process group and to what the program has left in others, and SIGKILL
  /// to all of these after the grace. Returns at once; may be called again with less.
  void stop(std::uint32_t grace_ms);

 private:
  using Clock = std::chrono::steady_clock;

  Variables environment_of(const JobOrder& order);
  void keep_token(const JobOrder& order);
  void follow();
  void take(const HostNews& news);
  void note_over();
  bool end_left();  // -> none of them runs
  void tell_of_left(std::size_t processes);
  std::optional<Clock::time_point> stopped_by() const;

  mutable std::mutex mutex_;
  JobInfo info_;                                 // guarded, as the next
  std::optional<Clock::time_point> stopped_by_;  // none: it was not stopped
  LeftProcesses left_;                           // the thread's; made before the program
  JobLog log_{STDOUT_FILENO};                    // the thread's, once there is one
  std::unique_ptr<LiveFolder> scratch_;          // with the file of the token; none: it has none
  std::unique_ptr<LiveFolder> folder_;
  std::unique_ptr<Programs> programs_;
  pid_t program_ = 0;  // leads a process group; 0: it was not started
  std::atomic<bool> leaving_{false};
  std::thread follower_;  // prints what the program prints
};

}  // namespace troupe::launch
