#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/timeline/call_history.hpp"
#include "ids/ids.hpp"
#include "os/ticks.hpp"

namespace troupe::runtime {

/// What one worker process has run, as it travels and lies in files: a CallHistory whose times are
/// those of its node's clock on the wall. A value.
struct CallTrace {
  struct Span {
    std::uint64_t begin = 0;   ///< nanoseconds since 1970
    std::uint64_t end = 0;     ///< 0: it has none
    std::uint64_t called = 0;  ///< nanoseconds since 1970; 0: not known
    ProcessId caller{};
    bool by_own_clock = true;  ///< `called` is of this node's clock, else of its caller's
    CallHistory::Kind kind = CallHistory::Kind::Task;
    bool failed = false;
    std::uint32_t name = 0;  ///< an index of `names`
    bool operator==(const Span&) const = default;
  };
  JobId job{};
  ProcessId process{};
  int pid = 0;
  NodeId node{};
  std::string node_name;
  std::string role;               ///< an actor's type, a rank; empty: it runs tasks
  std::uint64_t read = 0;         ///< when this was read: nanoseconds since 1970
  bool ended = false;             ///< the process had ended then
  std::uint64_t overwritten = 0;  ///< spans that were forgotten
  std::vector<std::string> names;
  std::vector<Span> spans;
  bool operator==(const CallTrace&) const = default;
};

/// Fills in spans, names and role. What claims to be of a time after `now`, as of a machine whose
/// counters disagree, is put at `now`.
void fill(CallTrace& trace, const CallHistory::Content& content, const os::TickScale& now);

/// As bytes, for files and messages.
std::string encode(const CallTrace& trace);
/// nullopt: it is none. Whatever the bytes are.
std::optional<CallTrace> decode_call_trace(std::string_view bytes);

}  // namespace troupe::runtime
