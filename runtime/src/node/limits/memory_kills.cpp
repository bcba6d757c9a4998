#include "node/limits/memory_kills.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "os/cgroup.hpp"

namespace troupe::node {
namespace {

/// Remembered of one look: more deaths than that are not explained at once.
constexpr std::uint64_t kMostAtOnce = 1000;

std::optional<std::uint64_t> read_counter(const std::string& file, const std::string& wanted) {
  std::ifstream in(file);
  std::string name;
  for (std::uint64_t count = 0; in >> name >> count;) {
    if (name == wanted) return count;
  }
  return std::nullopt;
}

std::vector<MemoryKills::Counter> counters_here() {
  std::vector<MemoryKills::Counter> found;
  const auto groups = os::own_memory_cgroup();
  const std::string in_group =
      "the kernel has just ended a process of this node's cgroup because that was out of memory";
  if (!groups.version_2.empty())
    found.push_back({groups.version_2 + "/memory.events", "oom_kill", in_group});
  if (!groups.version_1.empty())
    found.push_back({groups.version_1 + "/memory.oom_control", "oom_kill", in_group});
  found.push_back({"/proc/vmstat", "oom_kill",
                   "the kernel has just ended a process of this machine because memory ran out, "
                   "most likely this one"});
  return found;
}

}  // namespace

MemoryKills::MemoryKills() : MemoryKills(counters_here()) {}

MemoryKills::MemoryKills(std::vector<Counter> counters) {
  for (auto& counter : counters) {
    const auto count = read_counter(counter.file, counter.name);
    if (count) watched_.push_back({std::move(counter), *count, {}});
  }
}

void MemoryKills::look(Clock::time_point now) {
  for (auto& one : watched_) {
    const auto count = read_counter(one.counter.file, one.counter.name).value_or(one.last);
    const auto rise = count - std::min(count, one.last);
    one.last = count;
    one.kills.insert(one.kills.end(), std::min(rise, kMostAtOnce), now);
    while (!one.kills.empty() && now - one.kills.front() > kRecent) one.kills.pop_front();
  }
}

std::string MemoryKills::explain(Clock::time_point now) {
  look(now);
  std::string means;
  for (auto& one : watched_) {
    if (one.kills.empty()) continue;
    if (means.empty()) means = one.counter.means;
    one.kills.pop_front();  // the wider counters have counted it too
  }
  return means;
}

}  // namespace troupe::node
