#include "plan/plan.hpp"

#include <algorithm>
#include <map>

namespace troupe::launch {
namespace {

/// A rank's own of the GPUs that the gang has on its node: equally many each, in order; one where
/// ranks share them.
std::vector<std::string> own_gpus(const std::vector<std::string>& of_node, std::size_t local,
                                  std::size_t ranks) {
  if (of_node.empty()) return {};
  const auto each = std::max<std::size_t>(1, of_node.size() / ranks);
  const auto first = of_node.begin() + static_cast<std::ptrdiff_t>(of_node.size() * local / ranks);
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

}  // namespace

GangPlan plan_gang(const std::vector<HostFacts>& hosts, int per_host) {
  GangPlan plan;
  std::map<int, std::vector<std::size_t>> ranks_of_node;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (int local = 0; local < per_host; ++local) {
      auto& ranks = ranks_of_node[hosts[host].node_rank];
      ranks.push_back(plan.ranks.size());
      plan.ranks.push_back({.host = static_cast<int>(host),
                            .node_rank = hosts[host].node_rank,
                            .local_rank = static_cast<int>(ranks.size()) - 1,
                            .address = hosts[host].address,
                            .node = hosts[host].node,
                            .port = hosts[host].ports.at(static_cast<std::size_t>(local) + 2),
                            .interface = hosts[host].interface});
    }
  }
  for (const auto& [node, ranks] : ranks_of_node) {
    const auto& gpus = hosts[static_cast<std::size_t>(plan.ranks[ranks.front()].host)].gpus;
    for (const auto rank : ranks) {
      auto& place = plan.ranks[rank];
      place.local_size = static_cast<int>(ranks.size());
      place.gpus = own_gpus(gpus, static_cast<std::size_t>(place.local_rank), ranks.size());
      place.node_gpus = gpus;
    }
  }
  plan.nodes = static_cast<int>(ranks_of_node.size());
  plan.master_port = hosts.front().ports.at(0);
  plan.coordinator_port = hosts.front().ports.at(1);
  plan.rendezvous_port = hosts.front().rendezvous_port;
  return plan;
}

}  // namespace troupe::launch
