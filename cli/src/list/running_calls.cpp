#include "list/running_calls.hpp"

#include <algorithm>
#include <string>

#include <boost/algorithm/hex.hpp>

#include "calls/timeline/call_trace.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

json what_runs(const char* state) {
  return {{"task", nullptr}, {"state", state}, {"runs", nullptr}};
}

/// The call that is under way; an older node tells of those that are over, too.
json what_runs(const runtime::CallTrace& trace) {
  using Span = runtime::CallTrace::Span;
  const auto is_call = [](const Span& span) {
    return span.kind != runtime::CallHistory::Kind::Wait;
  };
  const auto call = std::ranges::find_if(trace.spans.rbegin(), trace.spans.rend(), is_call);
  if (call == trace.spans.rend() || call->end != 0) return what_runs("leased");
  const bool waits = !is_call(trace.spans.back()) && trace.spans.back().end == 0;
  const auto ran = trace.read - std::min(trace.read, call->begin);
  return {{"task", trace.names[call->name]},
          {"state", waits ? "blocked" : "running"},
          {"runs", static_cast<double>(ran) / 1e9}};
}

}  // namespace

RunningCalls::RunningCalls(const json& answer)
    : silent_(answer.at("silent_nodes").get<std::set<Number>>()) {
  for (const auto& part : answer.at("parts")) {
    const auto trace =
        runtime::decode_call_trace(boost::algorithm::unhex(part.at("text").get<std::string>()));
    told_[part.at("process").get<Number>()] = trace ? what_runs(*trace) : what_runs("unknown");
  }
}

json RunningCalls::of(const json& process) const {
  if (silent_.contains(process.at("node").get<Number>())) return what_runs("unknown");
  const auto told = told_.find(process.at("process").get<Number>());
  return told == told_.end() ? what_runs("leased") : told->second;
}

}  // namespace troupe::cli
