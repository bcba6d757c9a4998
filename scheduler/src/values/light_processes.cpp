#include "values/light_processes.hpp"
#include "id_format.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace troupe::scheduler {

void LightProcesses::add(Process& process) {
  assert(!process.light && process.held.resources.empty());
  process.light = true;
  count(*process.node, process.node->light_processes + 1);
}

void LightProcesses::remove(Process& process) {
  assert(process.light);
  process.light = false;
  count(*process.node, process.node->light_processes - 1);
}

/// With the entry that is there.
void LightProcesses::count(Node& node, std::size_t light) {
  auto entry = order_.extract(place_of(node));
  node.light_processes = light;
  entry.value() = place_of(node);
  order_.insert(std::move(entry));
}

std::optional<std::string> LightProcesses::broken_invariant(
    const std::vector<const Node*>& nodes) const {
  for (const auto* node : nodes) {
    for (const auto& process : node->processes) {
      const bool has_nothing = process.held.resources.empty() && process.loan.lent().is_zero();
      if (process.light != (process.role != Role::None && has_nothing))
        return fmt::format(
            "process {}: it is in use, holds nothing and is not light, or the other way round",
            process.id);
    }
    const auto light = std::ranges::count(node->processes, true, &Process::light);
    if (static_cast<std::size_t>(light) != node->light_processes)
      return fmt::format("node {}: light processes are miscounted", node->id);
    if (!order_.contains(place_of(*node)))
      return fmt::format("node {}: it has no place by its light processes", node->id);
  }
  if (order_.size() != nodes.size()) return "a node that is gone has a place by light processes";
  return std::nullopt;
}

}  // namespace troupe::scheduler
