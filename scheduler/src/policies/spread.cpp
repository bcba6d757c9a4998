#include "policies/spread.hpp"

#include <algorithm>

namespace troupe::scheduler {

Placement place_spread(const Ask& ask, std::span<const Candidate> candidates) {
  auto rooms = rooms_now(ask, candidates);
  if (auto lack = lack_of_room(ask, candidates, rooms)) return std::move(*lack);

  std::ranges::stable_sort(rooms, std::ranges::greater{}, &Room::slots);
  std::vector<std::size_t> ranks(rooms.size());
  // Round by round over the nodes that still have room: they are a shrinking front part, as the
  // order is by room.
  std::size_t open = rooms.size();
  std::size_t placed = 0;
  for (std::size_t round = 1; placed < ask.count; ++round) {
    while (rooms[open - 1].slots < round) --open;
    for (std::size_t i = 0; i < open && placed < ask.count; ++i, ++placed) ++ranks[i];
  }

  Chosen chosen;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    chosen.nodes.insert(chosen.nodes.end(), ranks[i], rooms[i].candidate->node);
  }
  return chosen;
}

}  // namespace troupe::scheduler
