#include "timeline/chrome_trace.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "options.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;
using runtime::CallTrace;
using runtime::NodeId;
using runtime::ProcessId;
using SpanKind = runtime::CallHistory::Kind;

constexpr std::uint64_t kCallNs = 1000;    // how long the span of a call is drawn in its caller
constexpr std::uint32_t kDriverGroup = 0;  // no node has this number

std::uint64_t end_of(const CallTrace& trace, const CallTrace::Span& span) {
  return std::max(span.begin, span.end == 0 ? trace.read : span.end);
}

std::string name_of(const CallTrace& trace, const CallTrace::Span& span) {
  if (span.kind == SpanKind::Wait) return "waits";
  const auto& name = trace.names[span.name];
  return name.empty() ? "(forgotten name)" : name;
}

const char* category_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::Task:
      return "task";
    case SpanKind::Constructor:
      return "constructor";
    case SpanKind::Method:
      return "method";
    case SpanKind::Wait:
      return "wait";
  }
  return "";
}

bool has_arrow(const CallTrace::Span& span) { return span.called != 0 && span.caller.value() != 0; }

/// A call, as its caller's track has it.
struct Called {
  std::uint64_t at = 0;
  const CallTrace* callee = nullptr;
  const CallTrace::Span* span = nullptr;
};

/// Where a process is drawn.
struct Track {
  std::uint32_t group = kDriverGroup;
  const CallTrace* trace = nullptr;  // nullptr: it has run nothing that is known
  std::vector<Called> calls;
};

class Writer {
 public:
  Writer(std::ostream& out, const Timeline& timeline) : out_(out), timeline_(timeline) {
    for (const auto& trace : timeline.traces) {
      auto& track = tracks_[trace.process];
      track.group = trace.node.value();
      track.trace = &trace;
      for (const auto& span : trace.spans) begin_ = std::min(begin_, span.begin);
    }
    for (const auto& trace : timeline.traces) {
      for (const auto& span : trace.spans) {
        if (!has_arrow(span)) continue;
        const auto at = std::min(span.called, span.begin);
        tracks_[span.caller].calls.push_back({at, &trace, &span});
        begin_ = std::min(begin_, at);
      }
    }
    for (auto& [process, track] : tracks_) std::ranges::sort(track.calls, {}, &Called::at);
  }

  void write() {
    out_ << "{\"displayTimeUnit\":\"ns\",\"otherData\":" << about().dump()
         << ",\"traceEvents\":[\n";
    name_groups();
    for (const auto& [process, track] : tracks_) {
      name(process, track);
      if (track.trace) runs(process, track);
      calls(process, track);
    }
    out_ << "\n]}\n";
  }

 private:
  json about() const {
    const auto size = size_of(timeline_);
    return {{"program", fmt::format("troupe {}", kVersion)},
            {"begin_unix_ns", std::to_string(tracks_.empty() ? 0 : begin_)},
            {"forgotten_spans", size.forgotten}};
  }

  void event(const json& what) {
    out_ << (first_ ? "" : ",\n") << what.dump(-1, ' ', false, json::error_handler_t::replace);
    first_ = false;
  }

  double micros(std::uint64_t ns) const { return static_cast<double>(ns - begin_) / 1000; }
  static double long_micros(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

  void meta(const char* what, std::uint32_t group, std::uint64_t thread, json arguments) {
    event({{"ph", "M"},
           {"name", what},
           {"pid", group},
           {"tid", thread},
           {"args", std::move(arguments)}});
  }

  void name_groups() {
    std::map<std::uint32_t, std::string> groups;
    for (const auto& [process, track] : tracks_) {
      groups[track.group] = track.trace
                                ? fmt::format("node {} ({})", track.group, track.trace->node_name)
                                : "drivers";
    }
    for (const auto& [group, text] : groups) {
      meta("process_name", group, 0, {{"name", text}});
      meta("process_sort_index", group, 0, {{"sort_index", group}});
    }
  }

  std::string title(ProcessId process, const Track& track) const {
    if (!track.trace) {
      const auto known = timeline_.drivers.find(process);
      return known == timeline_.drivers.end() ? fmt::format("process {}, ended", process)
                                              : known->second;
    }
    const auto& trace = *track.trace;
    return fmt::format("process {} (pid {}) {}{}", process, trace.pid,
                       trace.role.empty() ? fmt::format("tasks of job {}", trace.job) : trace.role,
                       trace.ended ? ", ended" : "");
  }

  void name(ProcessId process, const Track& track) {
    meta("thread_name", track.group, process.value(), {{"name", title(process, track)}});
    meta("thread_sort_index", track.group, process.value(), {{"sort_index", process.value()}});
  }

  void span(const char* category, const std::string& name, ProcessId process, const Track& track,
            std::uint64_t begin, std::uint64_t end, json arguments) {
    event({{"ph", "X"},
           {"cat", category},
           {"name", name},
           {"pid", track.group},
           {"tid", process.value()},
           {"ts", micros(begin)},
           {"dur", long_micros(end - begin)},
           {"args", std::move(arguments)}});
  }

  void runs(ProcessId process, const Track& track) {
    const auto& trace = *track.trace;
    for (const auto& ran : trace.spans) {
      json arguments = json::object();
      if (ran.kind != SpanKind::Wait) arguments["job"] = trace.job.value();
      if (has_arrow(ran)) {
        arguments["caller"] = fmt::format("process {}", ran.caller);
        arguments["waited_us"] = long_micros(ran.begin - std::min(ran.called, ran.begin));
      }
      if (ran.failed) arguments["failed"] = true;
      if (ran.end == 0) arguments["unfinished"] = trace.ended ? "its process ended" : "it runs";
      span(category_of(ran.kind), name_of(trace, ran), process, track, ran.begin,
           end_of(trace, ran), std::move(arguments));
    }
  }

  /// Where something begins or ends in a track: in order.
  static std::vector<std::uint64_t> edges(const Track& track) {
    std::vector<std::uint64_t> found;
    for (const auto& call : track.calls) found.push_back(call.at);
    if (track.trace) {
      for (const auto& ran : track.trace->spans) {
        found.push_back(ran.begin);
        found.push_back(end_of(*track.trace, ran));
      }
    }
    std::ranges::sort(found);
    return found;
  }

  /// An arrow is bound to the span that it begins in, so each call is one: as short as the next
  /// edge of its track has it.
  void calls(ProcessId process, const Track& track) {
    const auto all = edges(track);
    for (const auto& call : track.calls) {
      const auto next = std::ranges::upper_bound(all, call.at);
      const auto end = next == all.end() ? call.at + kCallNs : std::min(*next, call.at + kCallNs);
      span("call", "call " + name_of(*call.callee, *call.span), process, track, call.at, end,
           {{"callee", fmt::format("process {}", call.callee->process)}});
      arrow(process, track, call);
    }
  }

  void arrow(ProcessId process, const Track& track, const Called& call) {
    ++arrows_;
    event({{"ph", "s"},
           {"cat", "call"},
           {"name", "call"},
           {"id", arrows_},
           {"pid", track.group},
           {"tid", process.value()},
           {"ts", micros(call.at)}});
    event({{"ph", "f"},
           {"bp", "e"},
           {"cat", "call"},
           {"name", "call"},
           {"id", arrows_},
           {"pid", call.callee->node.value()},
           {"tid", call.callee->process.value()},
           {"ts", micros(call.span->begin)}});
  }

  std::ostream& out_;
  const Timeline& timeline_;
  std::map<ProcessId, Track> tracks_;
  std::uint64_t begin_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t arrows_ = 0;
  bool first_ = true;
};

void shift(std::uint64_t& time, std::int64_t ahead) {
  if (time != 0) time -= static_cast<std::uint64_t>(ahead);
}

}  // namespace

void align_clocks(Timeline& timeline, const std::map<NodeId, NodeClock>& clocks) {
  const auto ahead_of = [&](NodeId node) -> std::int64_t {
    const auto found = clocks.find(node);
    if (found == clocks.end()) return 0;
    const auto [ahead, error] = found->second;
    return std::abs(ahead) > error ? ahead : 0;
  };
  std::map<ProcessId, NodeId> nodes;
  for (const auto& trace : timeline.traces) nodes[trace.process] = trace.node;
  for (auto& trace : timeline.traces) {
    const auto own = ahead_of(trace.node);
    shift(trace.read, own);
    for (auto& span : trace.spans) {
      const auto caller = nodes.find(span.caller);
      const auto callers = caller == nodes.end() ? 0 : ahead_of(caller->second);
      shift(span.begin, own);
      shift(span.end, own);
      shift(span.called, span.by_own_clock ? own : callers);
    }
  }
}

void keep_since(Timeline& timeline, std::uint64_t from) {
  for (auto& trace : timeline.traces) {
    std::erase_if(trace.spans,
                  [&](const CallTrace::Span& span) { return end_of(trace, span) < from; });
  }
  std::erase_if(timeline.traces, [](const CallTrace& trace) { return trace.spans.empty(); });
}

TimelineSize size_of(const Timeline& timeline) {
  TimelineSize size{.processes = timeline.traces.size()};
  std::set<NodeId> nodes;
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  for (const auto& trace : timeline.traces) {
    nodes.insert(trace.node);
    size.forgotten += trace.overwritten;
    for (const auto& span : trace.spans) {
      size.calls += span.kind == SpanKind::Wait ? 0 : 1;
      begin = std::min(begin, span.begin);
      end = std::max(end, end_of(trace, span));
    }
  }
  size.nodes = nodes.size();
  if (end > begin) size.seconds = static_cast<double>(end - begin) / 1e9;
  return size;
}

void write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  Writer(out, timeline).write();
}

}  // namespace troupe::cli
