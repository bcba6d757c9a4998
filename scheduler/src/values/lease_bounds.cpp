#include "values/lease_bounds.hpp"
#include "id_format.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::scheduler {

std::optional<std::string> LeaseBounds::broken_invariant(
    const std::vector<const Node*>& nodes) const {
  std::size_t at_bound = 0;
  for (const auto* node : nodes) {
    const auto leases = std::ranges::count(node->processes, Role::Lease, &Process::role);
    if (static_cast<std::size_t>(leases) != node->lease_processes)
      return fmt::format("node {}: lease processes are miscounted", node->id);
    at_bound += is_at_bound(*node) ? 1 : 0;
  }
  if (at_bound != nodes_at_bound_) return "nodes at their bound on lease processes are miscounted";
  return std::nullopt;
}

}  // namespace troupe::scheduler
