// Tasks: one at a time, pipelined, and what one that waits costs in memory.
#include <vector>

#include <troupe/troupe.hpp>

#include "cases.hpp"
#include "counter.hpp"
#include "processes.hpp"

namespace troupe::bench {
namespace {

int returned(int x) { return x; }

std::vector<Ref<int>> submit(int count) {
  std::vector<Ref<int>> refs;
  refs.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) refs.push_back(task<returned>(1));
  return refs;
}

/// What this process and the cluster under it hold, once it has stopped growing.
double settled_rss_bytes() {
  auto tree = processes_of(::getpid());
  auto before = rss_bytes(tree);
  for (int quiet = 0; quiet < 3;) {
    pause(std::chrono::milliseconds(50));
    const auto now = rss_bytes(tree);
    quiet = now == before ? quiet + 1 : 0;
    before = now;
  }
  return before;
}

}  // namespace

void tasks(const Report& report) {
  report.latency("task_sync", sized(report, 300, 20), [] { task<returned>(1).get(); });
  const int calls = sized(report, 1000, 50);
  report.rate("task_async", "1/s", calls, [&] {
    for (const auto& ref : submit(calls)) ref.get();
  });
}

void pending_tasks(const Report& report) {
  constexpr auto kName = "pending_task_bytes";
  if (!report.wants(kName)) return;
  const auto cluster = init({.cpus = 1});
  const auto holder = with({.cpus = 1}).spawn<Counter>();  // of the one CPU
  holder.ready().get();
  const int count = sized(report, 100'000, 2'000);
  const auto before = settled_rss_bytes();
  const auto refs = submit(count);
  const auto after = settled_rss_bytes();
  report.print(kName, (after - before) / count, "B",
               "resident memory of driver, head and node together; the refs are the driver's");
  holder.kill();
  for (const auto& ref : refs) ref.get();  // they were tasks
}

}  // namespace troupe::bench
