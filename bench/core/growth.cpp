// How cost grows: with the threads that call one actor, with the actors that one process calls,
// with the size of a value, and with the tasks that stand in the queue. One session each, so that
// none has another's warmth.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <troupe/troupe.hpp>

#include "cases.hpp"
#include "counter.hpp"

namespace troupe::bench {
namespace {

constexpr auto kName = "growth";

int add(const std::vector<Actor<Counter>>& counters, int calls) {
  std::vector<Ref<int>> refs;
  refs.reserve(static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i)
    refs.push_back(counters[static_cast<std::size_t>(i) % counters.size()].call<&Counter::add>(1));
  int sum = 0;
  for (const auto& ref : refs) sum += ref.get();
  return sum;
}

void callers(const Report& report) {
  const std::vector<Actor<Counter>> counter{spawn<Counter>()};
  const int calls = sized(report, 4000, 40);
  for (const int threads : {1, 2, 4, 8, 16}) {
    report.rate(fmt::format("growth_calls_by_{}_threads", threads), "1/s", calls, [&] {
      std::vector<std::thread> all;
      for (int i = 0; i < threads; ++i) all.emplace_back([&] { add(counter, calls / threads); });
      for (auto& thread : all) thread.join();
    });
  }
  counter[0].kill();
}

void called(const Report& report) {
  std::vector<Actor<Counter>> counters;
  const int calls = sized(report, 4000, 40);
  for (const int count : {1, 10, 100, 1000}) {
    if (report.smoke() && count > 10) break;
    while (static_cast<int>(counters.size()) < count) counters.push_back(spawn<Counter>());
    for (int i = 0; i < 20; ++i) add(counters, count);  // each has its channel
    report.rate(fmt::format("growth_calls_of_{}_actors", count), "1/s", calls,
                [&] { add(counters, calls); });
  }
}

void sizes(const Report& report) {
  for (const auto& [label, bytes] :
       std::vector<std::pair<const char*, std::size_t>>{{"1KiB", std::size_t{1} << 10},
                                                        {"32KiB", std::size_t{32} << 10},
                                                        {"1MiB", std::size_t{1} << 20},
                                                        {"32MiB", std::size_t{32} << 20},
                                                        {"1GiB", std::size_t{1} << 30}}) {
    if (report.smoke() && bytes > (std::size_t{1} << 20)) break;
    const Array<char> value(std::vector<char>(bytes, 'x'));
    report.rate(fmt::format("growth_put_{}", label), "1/s", 1, [&] { put(value); });
    const auto ref = put(value);
    report.rate(fmt::format("growth_get_{}", label), "1/s", 100, [&] {
      for (int i = 0; i < 100; ++i) ref.get();
    });
    report.rate(fmt::format("growth_call_with_{}", label), "1/s", 1,
                [&] { task<[](const Array<char>& got) { return got[0]; }>(value).get(); });
  }
}

int small(int x) { return x; }

void queue(const Report& report) {
  for (const int count : {1'000, 10'000, 100'000, 1'000'000}) {
    if (report.smoke() && count > 1'000) break;
    report.rate(fmt::format("growth_tasks_queued_{}", count), "1/s", count, [&] {
      std::vector<Ref<int>> refs;
      refs.reserve(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) refs.push_back(task<small>(1));
      for (const auto& ref : refs) ref.get();
    });
  }
}

}  // namespace

void growth(const Report& report) {
  if (!report.wants(kName)) return;
  for (const auto part : {&callers, &called, &sizes, &queue}) {
    const auto cluster = init();
    part(report);
  }
}

}  // namespace troupe::bench
