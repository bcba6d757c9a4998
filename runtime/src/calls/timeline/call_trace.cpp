#include "calls/timeline/call_trace.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>
#include <kj/exception.h>

#include "wire/message.capnp.h"

namespace troupe::runtime {
namespace {

constexpr std::uint64_t kTraceMagic = 0x31'45'43'41'52'54'54'00;  // "TTRACE1"
constexpr std::size_t kMostSpans = std::size_t{1} << 20;
constexpr std::uint8_t kLastKind = 3;

/// Where the caller's clock is not this machine's ticks, the difference of two clocks on walls was
/// taken as the call came.
std::uint64_t called_at(const CallHistory::Span& span, std::uint64_t begin,
                        const os::TickScale& now) {
  if (span.caller.value() == 0) return 0;
  const auto waited =
      span.by_clock
          ? span.waited
          : static_cast<std::uint64_t>(static_cast<double>(span.waited) * now.ns_per_tick);
  return begin - std::min(begin, waited);
}

void write_trace(wire::CallTrace::Builder out, const CallTrace& trace) {
  out.setMagic(kTraceMagic);
  out.setJob(trace.job.value());
  out.setProcess(trace.process.value());
  out.setPid(trace.pid);
  out.setNode(trace.node.value());
  out.setNodeName(trace.node_name);
  out.setRole(trace.role);
  out.setRead(trace.read);
  out.setEnded(trace.ended);
  out.setOverwritten(trace.overwritten);
  auto names = out.initNames(static_cast<unsigned>(trace.names.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, trace.names[i]);
  auto spans = out.initSpans(static_cast<unsigned>(trace.spans.size()));
  for (unsigned i = 0; i < spans.size(); ++i) {
    const auto& span = trace.spans[i];
    auto to = spans[i];
    to.setBegin(span.begin);
    to.setEnd(span.end);
    to.setCalled(span.called);
    to.setCaller(span.caller.value());
    to.setKind(static_cast<std::uint8_t>(span.kind));
    to.setFailed(span.failed);
    to.setByOwnClock(span.by_own_clock);
    to.setName(span.name);
  }
}

std::optional<CallTrace::Span> read_span(wire::CallTrace::Span::Reader from, std::size_t names) {
  if (from.getKind() > kLastKind || from.getName() >= names) return std::nullopt;
  return CallTrace::Span{.begin = from.getBegin(),
                         .end = from.getEnd(),
                         .called = from.getCalled(),
                         .caller = ProcessId(from.getCaller()),
                         .by_own_clock = from.getByOwnClock(),
                         .kind = static_cast<CallHistory::Kind>(from.getKind()),
                         .failed = from.getFailed(),
                         .name = from.getName()};
}

std::optional<CallTrace> read_trace(wire::CallTrace::Reader from) {
  if (from.getMagic() != kTraceMagic || from.getSpans().size() > kMostSpans) return std::nullopt;
  CallTrace trace{.job = JobId(from.getJob()),
                  .process = ProcessId(from.getProcess()),
                  .pid = from.getPid(),
                  .node = NodeId(from.getNode()),
                  .node_name = from.getNodeName(),
                  .role = from.getRole(),
                  .read = from.getRead(),
                  .ended = from.getEnded(),
                  .overwritten = from.getOverwritten(),
                  .names = {},
                  .spans = {}};
  for (const auto name : from.getNames()) trace.names.emplace_back(name.cStr());
  for (const auto span : from.getSpans()) {
    auto found = read_span(span, trace.names.size());
    if (!found) return std::nullopt;
    trace.spans.push_back(*found);
  }
  return trace;
}

}  // namespace

void fill(CallTrace& trace, const CallHistory::Content& content, const os::TickScale& now) {
  trace.read = now.unix_ns;
  trace.role = content.role;
  trace.overwritten = content.overwritten;
  std::map<std::string, std::uint32_t> known;
  for (const auto& span : content.spans) {
    const auto name =
        known.emplace(span.name, static_cast<std::uint32_t>(known.size())).first->second;
    if (name == trace.names.size()) trace.names.push_back(span.name);
    const auto begin = std::min(now.unix_ns_of(span.begin), now.unix_ns);
    const auto end = std::clamp(now.unix_ns_of(span.end), begin, now.unix_ns);
    trace.spans.push_back({.begin = begin,
                           .end = span.end == 0 ? 0 : end,
                           .called = called_at(span, begin, now),
                           .caller = span.caller,
                           .by_own_clock = !span.by_clock,
                           .kind = span.kind,
                           .failed = span.failed,
                           .name = name});
  }
}

std::string encode(const CallTrace& trace) {
  capnp::MallocMessageBuilder message;
  write_trace(message.initRoot<wire::CallTrace>(), trace);
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

std::optional<CallTrace> decode_call_trace(std::string_view bytes) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (words.size() * sizeof(capnp::word) != bytes.size() || words.size() == 0) return std::nullopt;
  std::memcpy(words.begin(), bytes.data(), bytes.size());
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words.size();
    capnp::FlatArrayMessageReader message(words, options);
    return read_trace(message.getRoot<wire::CallTrace>());
  } catch (const kj::Exception&) {
    return std::nullopt;
  }
}

}  // namespace troupe::runtime
