#include "policies/pack.hpp"

#include <algorithm>

namespace troupe::scheduler {

Placement place_packed(const Ask& ask, std::span<const Candidate> candidates) {
  auto rooms = rooms_now(ask, candidates);
  if (auto lack = lack_of_room(ask, candidates, rooms)) return std::move(*lack);

  std::ranges::stable_sort(rooms, std::ranges::greater{}, &Room::slots);
  Chosen chosen;
  for (auto room = rooms.begin(); chosen.nodes.size() < ask.count; ++room) {
    const auto rest = ask.count - chosen.nodes.size();
    auto home = room;
    auto ranks = room->slots;
    if (ranks >= rest) {
      const auto too_small =
          std::partition_point(room, rooms.end(), [&](const Room& r) { return r.slots >= rest; });
      home = std::min_element(room, too_small,
                              [](const Room& a, const Room& b) { return a.slots < b.slots; });
      ranks = rest;
    }
    chosen.nodes.insert(chosen.nodes.end(), ranks, home->candidate->node);
  }
  return chosen;
}

}  // namespace troupe::scheduler
