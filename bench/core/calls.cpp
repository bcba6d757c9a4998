// Calls of actors: one at a time, pipelined, and between many callers and many actors.
#include <algorithm>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "cases.hpp"
#include "counter.hpp"

namespace troupe::bench {
namespace {

int pipelined_adds(const std::vector<Actor<Counter>>& counters, int calls) {
  std::vector<Ref<int>> refs;
  refs.reserve(static_cast<std::size_t>(calls));
  for (std::size_t i = 0; i < static_cast<std::size_t>(calls); ++i) {
    refs.push_back(counters[i % counters.size()].call<&Counter::add>(1));
  }
  int sum = 0;
  for (const auto& ref : refs) sum += ref.get();
  return sum;
}

/// Of replies that are too large for a ring and too small for the store.
void large_replies(const Report& report, const Actor<Counter>& counter) {
  constexpr auto kBytes = std::size_t{32} << 10;
  const int calls = sized(report, 500, 20);
  report.rate("actor_replies_32KiB_async", "1/s", calls, [&] {
    std::vector<Ref<std::string>> refs;
    for (int i = 0; i < calls; ++i) refs.push_back(counter.call<&Counter::text>(kBytes));
    for (const auto& ref : refs) ref.get();
  });
}

/// Calls others from a process of its own.
struct Caller {
  std::vector<Actor<Counter>> counters;
  explicit Caller(std::vector<Actor<Counter>> others) : counters(std::move(others)) {}
  int drive(int calls) const { return pipelined_adds(counters, calls); }
};

void many_to_many(const Report& report) {
  constexpr auto kName = "actor_calls_n_to_n";
  if (!report.wants(kName)) return;
  const auto n = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  const int calls = sized(report, 1000, 20);
  std::vector<Actor<Counter>> counters;
  for (int i = 0; i < n; ++i) counters.push_back(spawn<Counter>());
  std::vector<Actor<Caller>> callers;
  for (int i = 0; i < n; ++i) callers.push_back(spawn<Caller>(counters));
  report.rate(kName, "1/s", n * calls, [&] {
    std::vector<Ref<int>> sums;
    for (const auto& caller : callers) sums.push_back(caller.call<&Caller::drive>(calls));
    for (const auto& sum : sums) sum.get();
  });
  for (const auto& caller : callers) caller.kill();
  for (const auto& counter : counters) counter.kill();
}

}  // namespace

void calls(const Report& report) {
  const std::vector<Actor<Counter>> counter{spawn<Counter>()};
  report.latency("actor_call_sync", sized(report, 500, 20),
                 [&] { counter[0].call<&Counter::add>(1).get(); });
  const int calls = sized(report, 2000, 50);
  report.rate("actor_call_async", "1/s", calls, [&] { pipelined_adds(counter, calls); });
  large_replies(report, counter[0]);
  many_to_many(report);
}

}  // namespace troupe::bench
