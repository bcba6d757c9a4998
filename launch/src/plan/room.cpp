#include "plan/room.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

int ranks_on(const NodeRoom& node, const RankNeeds& needs) {
  if (!has_labels(node, needs)) return 0;
  double most = 1 << 16;
  if (needs.cpus > 0) most = std::min(most, node.cpus / needs.cpus);
  if (needs.gpus > 0) most = std::min(most, node.gpus / needs.gpus);
  if (needs.memory_gb > 0) most = std::min(most, node.memory_gb / needs.memory_gb);
  return static_cast<int>(std::floor(most + 1e-6));
}

}  // namespace

bool has_labels(const NodeRoom& node, const RankNeeds& needs) {
  return std::ranges::all_of(needs.labels, [&](const auto& label) {
    return std::ranges::find(node.labels, label) != node.labels.end();
  });
}

int ranks_that_fit(const RankNeeds& needs, const RankLayout& layout,
                   const std::vector<NodeRoom>& nodes) {
  int all = 0, largest = 0, used = 0;  // nodes with room for one rank, or for `per_node`
  const int each = std::max(1, layout.per_node);
  for (const auto& node : nodes) {
    const int here = ranks_on(node, needs);
    all += here;
    largest = std::max(largest, here);
    if (here >= each) ++used;
  }
  if (layout.per_node > 0) return used * layout.per_node;
  if (layout.strategy == Strategy::StrictSpread) return used;
  return layout.strategy == Strategy::StrictPack ? largest : all;
}

std::string way_to_room(int ranks, const RankNeeds& needs, const RankLayout& layout,
                        const std::vector<NodeRoom>& nodes) {
  const int fitting = ranks_that_fit(needs, layout, nodes);
  if (nodes.empty() || fitting >= ranks) return {};
  std::string ways = fitting > 0 ? fmt::format("give -n {}, or ", fitting) : "give ";
  for (const double cpus : {0.5, 0.25, 0.1}) {
    auto smaller = needs;
    smaller.cpus = cpus;
    if (cpus >= needs.cpus || ranks_that_fit(smaller, layout, nodes) < ranks) continue;
    ways += fmt::format("--cpus {:g} so that {} ranks have room, or ", cpus, ranks);
    break;
  }
  if (layout.per_node == 0 && ranks_that_fit(needs, {}, nodes) >= ranks)
    ways += "another --strategy, or ";
  // Nothing that is given makes room.
  if (ways == "give ") ways.clear();
  return ways + "add a machine with `troupe worker`";
}

}  // namespace troupe::launch
