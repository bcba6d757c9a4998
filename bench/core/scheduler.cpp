// The scheduler's State alone, in virtual time: how many decisions it makes in a large cluster
// whose nodes fail with more tasks than it can hold, and how the cost of one grows.
#include <algorithm>

#include <fmt/format.h>

#include "cases.hpp"
#include "simulation.hpp"

namespace troupe::bench {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};  // the invariants only at the end

/// Leases that run on that many nodes when a queue waits: tasks take 1.125 CPUs at the mean.
std::uint64_t running_on(std::uint32_t nodes) { return std::uint64_t{nodes} * 32 / 9; }

/// The cost of a decision while `at_once` tasks wait or run: each that ends is followed by a new
/// one.
void grow(const Report& report, const std::string& figure, std::uint32_t nodes,
          std::uint64_t at_once, std::string_view note) {
  const std::uint64_t more = report.smoke() ? 500 : 200'000;
  Simulation simulation({.nodes = nodes,
                         .tasks = at_once + more,
                         .at_once = at_once,
                         .failures = false,
                         .check_every = kNever},
                        report.options().seed);
  simulation.run();
  report.print(figure, simulation.steady_ns_per_decision(), "ns",
               fmt::format("{}, {} nodes", note, nodes));
}

}  // namespace

void scheduler(const Report& report) {
  constexpr auto kName = "scheduler_decisions_per_s";
  if (!report.wants(kName)) return;
  Simulation simulation(
      report.smoke()
          ? Load{.nodes = 200, .tasks = 5'000, .at_once = 5'000, .jobs = 5, .check_every = 2'000}
          : Load{},
      report.options().seed);
  simulation.run();
  report.print(kName, simulation.decisions_per_second(), "1/s", simulation.summary());
}

void scheduler_growth(const Report& report) {
  if (!report.wants("scheduler_growth")) return;
  const auto small = [&](std::uint64_t full) {
    return report.smoke() ? std::min<std::uint64_t>(full, 200) : full;
  };
  for (const std::uint32_t nodes : {10, 100, 1'000, 10'000}) {
    const auto some = static_cast<std::uint32_t>(small(nodes));
    grow(report, fmt::format("scheduler_growth_{}_nodes_no_queue_ns", nodes), some,
         running_on(some) / 2, "half full, nobody waits");
  }
  for (const std::uint32_t nodes : {10, 100, 1'000, 10'000}) {
    const auto some = static_cast<std::uint32_t>(small(nodes));
    const auto waiting = small(10'000);
    grow(report, fmt::format("scheduler_growth_{}_nodes_ns", nodes), some,
         running_on(some) + waiting, fmt::format("{} wait", waiting));
  }
  for (const std::uint64_t queue : {1'000, 10'000, 100'000, 1'000'000}) {
    const auto waiting = small(queue);
    const auto nodes = static_cast<std::uint32_t>(small(1'000));
    grow(report, fmt::format("scheduler_growth_{}_waiting_ns", queue), nodes,
         running_on(nodes) + waiting, fmt::format("{} wait", waiting));
  }
}

}  // namespace troupe::bench
