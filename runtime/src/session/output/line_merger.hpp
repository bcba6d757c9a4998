#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ids/ids.hpp"

namespace troupe::runtime {

/// A line that a worker process has printed.
struct OutputLine {
  std::string text;  ///< without its end
  ProcessId process{};
  std::string label;  ///< what printed it there, for people: "fib"; empty: not known
  std::string from;   ///< where that was, for people: "process=7 pid=4711 node=w1"
};

/// Equal lines of several processes become one with a count. A value; time is passed in.
///
///   1. A line that no other process has printed within the last 3 s is printed at once; so are the
///      repetitions of one process alone.
///   2. What another process prints of it within those 3 s is counted, and printed once when they are
///      over; while that goes on, once each 3 s.
///   3. No line is lost: each is printed, or counted by one that is.
///   4. It remembers kMost lines at most: above that the oldest is printed before its time.
class LineMerger {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{3};
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kMostLabels = 4;

  struct Merged {
    OutputLine line;            ///< the last one
    std::size_t times = 1;      ///< that it was printed, this one included
    std::size_t processes = 1;  ///< that printed it
    /// All that printed it, sorted, where processes > 1; kMostLabels at most, then "...".
    std::vector<std::string> labels = {};
  };

  /// -> what is to be printed now, in order.
  std::vector<Merged> take(OutputLine line, Time now);
  std::vector<Merged> due(Time now);
  /// At the end: all that is counted.
  std::vector<Merged> rest();
  /// When due() has something; none: not without another line.
  std::optional<Time> next() const;

 private:
  struct Entry {
    std::string text;
    Time since;
    std::set<ProcessId> processes;  // of this window and of the one before
    std::optional<OutputLine> held;
    std::size_t times = 0;  // held
    std::set<ProcessId> held_of;
    std::set<std::string> labels;  // held; one more than are told
  };
  using Entries = std::list<Entry>;  // the oldest first

  static void settle(Entry& entry, std::vector<Merged>& out);
  void forget_oldest();

  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_text_;  // views into entries_
};

}  // namespace troupe::runtime
