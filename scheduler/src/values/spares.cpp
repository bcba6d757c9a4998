#include "values/spares.hpp"
#include "id_format.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace troupe::scheduler {

void Spares::add(Process& process, TimePoint now) {
  assert(!is_spare(process));
  process.idle_since = now;
  by_idleness_.push_back(process);
  process.node->spares.list_.push_back({process.job->id, &process});
}

void Spares::renew(Process& process, TimePoint now) {
  unlist(process);
  add(process, now);
}

void Spares::unlist(Process& process) {
  process.by_idleness.unlink();
  auto& list = process.node->spares.list_;
  list.erase(std::ranges::find(list, &process, &Spare::process));
}

Process* Spares::take(const Job& job, Node& node, std::uint32_t threads) {
  auto& list = node.spares.list_;
  auto last = list.end();
  for (auto at = list.end(); at != list.begin();) {
    --at;
    if (at->job != job.id || at->process->threads != threads) continue;
    if (last == list.end() || at->process->state == ProcessState::Idle) last = at;
    if (last->process->state == ProcessState::Idle) break;
  }
  if (last == list.end()) return nullptr;
  auto& process = *last->process;
  process.by_idleness.unlink();
  list.erase(last);
  return &process;
}

Process* Spares::surplus_of_many(const SpareList& spares, std::size_t most) {
  const auto unneeded = [](const Spare& spare) { return !spare.process->is_needed(); };
  if (static_cast<std::size_t>(std::ranges::count_if(spares, unneeded)) <= most) return nullptr;
  return std::ranges::find_if(spares, unneeded)->process;
}

std::vector<Process*> Spares::idle_since(TimePoint time) {
  std::vector<Process*> found;
  for (auto& process : by_idleness_) {
    if (process.idle_since > time) break;
    found.push_back(&process);
  }
  return found;
}

std::optional<std::string> Spares::broken_invariant(const std::vector<const Node*>& nodes) const {
  std::size_t listed = 0;
  for (const auto* node : nodes) {
    for (const auto& process : node->processes) {
      if (std::ranges::count(node->spares, &process, &Spare::process) != is_spare(process))
        return fmt::format(
            "process {}: it is a spare of node {} and is not listed once there, or the other way "
            "round",
            process.id, node->id);
    }
    for (const auto& spare : node->spares) {
      if (spare.process->node != node || spare.process->job->id != spare.job)
        return fmt::format("node {}: spare process {} is another node's, or another job's",
                           node->id, spare.process->id);
    }
    const auto since = [](const Spare& spare) { return spare.process->idle_since; };
    if (!std::ranges::is_sorted(node->spares, {}, since))
      return fmt::format("node {}: the spares are not in the order of their idleness", node->id);
    listed += node->spares.size();
  }
  if (listed != by_idleness_.size()) return "spares are in the order of idleness and on no node";
  if (!std::ranges::is_sorted(by_idleness_, {}, &Process::idle_since))
    return "spares are not in the order of their idleness";
  return std::nullopt;
}

}  // namespace troupe::scheduler
