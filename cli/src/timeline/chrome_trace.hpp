#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "calls/timeline/call_trace.hpp"

namespace troupe::cli {

/// What processes have run, on its way to a file of Chrome's trace event format, which Perfetto and
/// chrome://tracing open. Pure.
struct Timeline {
  std::vector<runtime::CallTrace> traces;
  /// Processes that make calls and run none: what they are, for people.
  std::map<runtime::ProcessId, std::string> drivers;
  bool is_incomplete = false;  ///< a node has not answered
};

/// How far the clock of a node is ahead of the head's, and by how much that may be wrong.
struct NodeClock {
  std::int64_t ahead_ns = 0;
  std::int64_t error_ns = 0;
};

/// Puts all times on the head's clock. A clock that is ahead by less than the error of that is taken
/// for right. Of drivers, the clocks are.
void align_clocks(Timeline& timeline, const std::map<runtime::NodeId, NodeClock>& clocks);

/// Forgets what had ended before `from`: nanoseconds since 1970.
void keep_since(Timeline& timeline, std::uint64_t from);

struct TimelineSize {
  std::size_t calls = 0;  ///< waits within them not counted
  std::size_t processes = 0;
  std::size_t nodes = 0;
  std::uint64_t forgotten = 0;  ///< spans that were overwritten
  double seconds = 0;           ///< from the first begin to the last end
};
TimelineSize size_of(const Timeline& timeline);

/// Writes the file. What holds of it:
///
///   1. Each process that has run something is a track ("thread") of its node ("process"), and so is
///      each that has called and run nothing, of a group of drivers.
///   2. Spans of a track lie one behind the other or one within the other.
///   3. Each run whose caller is known has an arrow from a span of its caller's track, which begins
///      as it was called, to its own. No arrow goes back in time.
///   4. Times are microseconds since the first of them, so that a double has their nanoseconds; when
///      that was stands in "otherData".
void write_chrome_trace(std::ostream& out, const Timeline& timeline);

}  // namespace troupe::cli
