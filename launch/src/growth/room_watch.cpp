#include "growth/room_watch.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "plan/status_nodes.hpp"

namespace troupe::launch {

RoomSeen room_seen(const nlohmann::json& status, const RankNeeds& needs, const RankLayout& layout,
                   const std::vector<RankPlace>& running) {
  auto nodes = nodes_in(status, needs, Share::Free);
  for (auto& node : nodes) {
    const auto own = static_cast<double>(std::ranges::count(running, node.node, &RankPlace::node));
    node.cpus += own * needs.cpus;
    node.gpus += own * needs.gpus;
    node.memory_gb += own * needs.memory_gb;
  }
  return {.ranks = ranks_that_fit(needs, layout, nodes),
          .others_wait = !status.at("pending").empty()};
}

void RoomWatch::see(const RoomSeen& seen, Duration passed) {
  const int ranks = std::min(seen.ranks, most_);
  if (ranks <= running_ || seen.others_wait) return miss();
  if (!has_room()) {
    ranks_ = ranks;
    lasted_ = Duration::zero();
    return;
  }
  ranks_ = std::min(ranks_, ranks);
  lasted_ += std::min(passed, longest_step_);
}

}  // namespace troupe::launch
