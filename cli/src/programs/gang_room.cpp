#include "programs/gang_room.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::cli {
namespace {

std::string units_text(double units, const char* one) {
  return fmt::format("{:g} {}{}", units, one, units == 1 ? "" : "s");
}

std::string held_text(double units) { return units == 0 ? "none" : fmt::format("{:g}", units); }

std::string nodes_text(std::size_t count) {
  return fmt::format("{} node{}", count, count == 1 ? "" : "s");
}

/// Of one kind of resource; empty: there is enough.
std::string why_too_little(const GangNeeds& needs, const Room& room, const char* key,
                           const char* one, double of_rank, double NodeRoom::*held) {
  if (of_rank <= 0) return {};
  double all = 0, most = 0;
  for (const auto& node : room.nodes) {
    all += node.*held;
    most = std::max(most, node.*held);
  }
  const auto of_host = of_rank * needs.ranks_of_host;
  const auto wanted = of_host * needs.hosts;
  if (wanted > all) {
    return fmt::format("[gang] {}: a trial needs {}, and {} has {}", key, units_text(wanted, one),
                       room.where, held_text(all));
  }
  const auto on_one = needs.on_one_node ? wanted : of_host;
  if (on_one <= most) return {};
  return fmt::format("[gang] {}: {} {}, and the largest node of {} has {}", key,
                     needs.on_one_node         ? "strict-pack has a trial on one node, which needs"
                     : needs.ranks_of_host > 1 ? "the ranks of a node (per_node) need"
                                               : "a rank needs",
                     units_text(on_one, one), room.where, held_text(most));
}

}  // namespace

std::vector<std::string> why_no_room(const GangNeeds& needs, const Room& room) {
  std::vector<std::string> all;
  all.push_back(why_too_little(needs, room, "cpus", "core", needs.cpus_of_rank, &NodeRoom::cpus));
  all.push_back(why_too_little(needs, room, "gpus", "GPU", needs.gpus_of_rank, &NodeRoom::gpus));
  if (needs.on_other_nodes && static_cast<std::size_t>(needs.hosts) > room.nodes.size()) {
    const bool per_node = needs.ranks_of_host > 1;
    all.push_back(fmt::format(
        "[gang] {}: a trial needs {} of its own, and {} {}", per_node ? "per_node" : "strategy",
        nodes_text(static_cast<std::size_t>(needs.hosts)), room.where,
        room.where == "this machine" ? "is one" : fmt::format("has {}", room.nodes.size())));
  }
  std::erase(all, "");
  return all;
}

std::vector<NodeRoom> nodes_of(const nlohmann::json& status) {
  std::vector<NodeRoom> nodes;
  for (const auto& node : status.at("nodes")) {
    const auto& total = node.at("total");
    nodes.push_back({total.value("cpu", 0.0), total.value("gpu", 0.0)});
  }
  return nodes;
}

}  // namespace troupe::cli
