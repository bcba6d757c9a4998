#include "policies/strict_spread.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::scheduler {

Placement place_strictly_spread(const Ask& ask, std::span<const Candidate> candidates) {
  auto rooms = rooms_now(ask, candidates);
  if (rooms.size() < ask.count) {
    const auto most = rooms_idle(ask, candidates).size();
    const auto text = [&](std::size_t nodes, std::string_view when) {
      return fmt::format("{} ranks of {} need as many nodes, and {} {} room for one {}", ask.count,
                         to_string(ask.each), nodes, nodes == 1 ? "has" : "have", when);
    };
    if (most < ask.count) return Impossible{text(most, "even when idle")};
    return Waits{text(rooms.size(), "now")};
  }

  std::ranges::stable_sort(rooms, {}, &Room::slots);
  Chosen chosen;
  for (std::size_t i = 0; i < ask.count; ++i) chosen.nodes.push_back(rooms[i].candidate->node);
  return chosen;
}

}  // namespace troupe::scheduler
