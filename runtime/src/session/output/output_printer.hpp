#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "session/output/line_merger.hpp"
#include "wire/message.capnp.h"

namespace troupe::runtime {

/// Prints what worker processes have printed, with who it was before each line, and equal lines of
/// several processes once with a count. Lines go above what the process draws in place there
/// (TerminalPicture). On a thread of its own, which begins with the first line: a
/// terminal that stands still (Ctrl-S, a pager) holds up nothing else. Lives in the driver.
class OutputPrinter {
 public:
  using Clock = std::chrono::steady_clock;
  /// That wait to be printed; above it lines are left out, and counted.
  static constexpr std::size_t kMostWaiting = 4 << 20;
  static constexpr std::size_t kMostLastLines = 1000;

  /// `names`: with who it was before each line. `is_private`: no program but this one can ask the
  /// cluster for a log.
  explicit OutputPrinter(int descriptor = STDERR_FILENO, bool names = true, bool is_private = false)
      : descriptor_(descriptor), names_(names), is_private_(is_private) {}
  ~OutputPrinter();
  OutputPrinter(const OutputPrinter&) = delete;
  OutputPrinter& operator=(const OutputPrinter&) = delete;

  /// Any thread; at once.
  void take(wire::WorkerOutput::Reader output);
  /// Of that process; empty: none has come, or kMostLastLines younger processes have printed since.
  /// Any thread.
  std::string last_line_of(ProcessId process);
  /// Prints all that waits, unless it takes longer than that; nothing after that.
  void finish(std::chrono::milliseconds patience);

 private:
  void start();
  void note_last_line(ProcessId process, std::string_view line);
  void push(OutputLine line);
  void push_notice(std::string text);
  void run();
  void print(const std::vector<LineMerger::Merged>& merged);
  void write(std::string_view lines);
  void put(std::string_view text);
  bool wait_until_writable();

  const int descriptor_;
  const bool names_;
  const bool is_private_;
  LineMerger merger_;       // the thread's
  bool is_broken_ = false;  // the thread's: nobody reads any more, or not in time

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<OutputLine> waiting_;  // without a process: notices
  std::size_t waiting_bytes_ = 0;
  std::uint64_t left_out_ = 0;  // since there was no room
  std::map<ProcessId, std::string> last_lines_;
  bool finishing_ = false;
  Clock::time_point finish_by_{};
  std::thread thread_;
};

}  // namespace troupe::runtime
