#include "calls/timeline/call_trace.hpp"

#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "os/ticks.hpp"
#include "rounds.hpp"

using namespace troupe::runtime;
namespace os = troupe::os;
using Kind = CallHistory::Kind;

namespace {

constexpr os::TickScale kReadAt{.ticks = 1'000'000, .unix_ns = 5'000'000'000, .ns_per_tick = 0.5};

CallTrace made_trace() {
  CallHistory::Content content{.role = "Counter", .overwritten = 3, .spans = {}};
  content.spans.push_back({.begin = 900'000,
                           .end = 950'000,
                           .waited = 1000,
                           .caller = 7_process,
                           .kind = Kind::Method,
                           .failed = true,
                           .name = "Counter::add"});
  content.spans.push_back({.begin = 960'000,
                           .waited = 1000,
                           .caller = 8_process,
                           .kind = Kind::Method,
                           .by_clock = true,
                           .name = "Counter::add"});
  content.spans.push_back({.begin = 970'000, .end = 980'000, .kind = Kind::Wait, .name = {}});
  content.spans.push_back({.begin = 2'000'000, .end = 1'000, .name = "of another clock"});
  CallTrace trace;
  trace.job = JobId(5);
  trace.process = 9_process;
  trace.pid = 4711;
  trace.node = NodeId(2);
  trace.node_name = "w2";
  fill(trace, content, kReadAt);
  return trace;
}

}  // namespace

TEST_CASE("ticks become times of the clock on the wall", "[runtime][tasks][timeline]") {
  const auto trace = made_trace();
  CHECK(trace.read == kReadAt.unix_ns);
  CHECK(trace.names == std::vector<std::string>{"Counter::add", "", "of another clock"});
  REQUIRE(trace.spans.size() == 4);
  CHECK(trace.spans[0].begin == kReadAt.unix_ns - 50'000);
  CHECK(trace.spans[0].end == kReadAt.unix_ns - 25'000);
  CHECK(trace.spans[0].called == kReadAt.unix_ns - 50'500);
  CHECK(trace.spans[0].by_own_clock);
  CHECK(trace.spans[1].end == 0);
  CHECK(trace.spans[1].called == kReadAt.unix_ns - 20'000 - 1000);
  CHECK(!trace.spans[1].by_own_clock);
  CHECK(trace.spans[2].called == 0);
  // What is not yet is put at the end of what is.
  CHECK(trace.spans[3].begin == kReadAt.unix_ns);
  CHECK(trace.spans[3].end == kReadAt.unix_ns);
}

TEST_CASE("a trace is read as it was written, and what is none is refused",
          "[runtime][tasks][timeline]") {
  const auto trace = made_trace();
  const auto bytes = encode(trace);
  const auto again = decode_call_trace(bytes);
  REQUIRE(again);
  CHECK(*again == trace);
  CHECK(!decode_call_trace(""));
  CHECK(!decode_call_trace("a log file, and no trace"));
  CHECK(!decode_call_trace(bytes.substr(0, bytes.size() / 2)));
}

TEST_CASE("no damage of a trace does more than to have it refused or changed",
          "[runtime][tasks][timeline]") {
  const auto bytes = encode(made_trace());
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = bytes;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto trace = decode_call_trace(damaged);
    if (!trace) continue;
    for (const auto& span : trace->spans) REQUIRE(span.name < trace->names.size());
  }
}

TEST_CASE("ticks measure what the clock measures", "[runtime][os][timeline]") {
  const auto before = os::ticks();
  const auto from = os::monotonic_ns();
  while (os::monotonic_ns() - from < 30'000'000) {
  }
  const auto by_ticks = os::duration_of(os::ticks() - before).count();
  const auto by_clock = static_cast<std::int64_t>(os::monotonic_ns() - from);
  CHECK(by_ticks <= by_clock + 1'000'000);
  CHECK(by_ticks >= 30'000'000 - 1'000'000);
  const auto now = os::TickScale::now();
  CHECK(now.unix_ns_of(now.ticks) == now.unix_ns);
  CHECK(now.unix_ns_of(before) < now.unix_ns - 29'000'000);
}
