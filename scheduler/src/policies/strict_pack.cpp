#include "policies/strict_pack.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::scheduler {
namespace {

const Room* most_room(const std::vector<Room>& rooms) {
  const auto most = std::ranges::max_element(rooms, {}, &Room::slots);
  return most == rooms.end() ? nullptr : &*most;
}

std::string one_node_text(const Ask& ask, const std::vector<Room>& rooms, std::string_view when) {
  const auto* most = most_room(rooms);
  if (most == nullptr)
    return fmt::format("no node holds a rank of {}{}", to_string(ask.each), when);
  return fmt::format("no node holds {} ranks of {}{}; the closest is {}, which holds {}", ask.count,
                     to_string(ask.each), when, to_string(*most->candidate), most->slots);
}

}  // namespace

Placement place_strictly_packed(const Ask& ask, std::span<const Candidate> candidates) {
  const auto rooms = rooms_now(ask, candidates);
  const Room* fullest = nullptr;
  for (const auto& room : rooms) {
    if (room.slots >= ask.count && (fullest == nullptr || room.slots < fullest->slots))
      fullest = &room;
  }
  if (fullest != nullptr) return Chosen{std::vector(ask.count, fullest->candidate->node)};

  const auto idle = rooms_idle(ask, candidates);
  const auto* most = most_room(idle);
  if (most == nullptr || most->slots < ask.count)
    return Impossible{one_node_text(ask, idle, " even when idle")};
  return Waits{one_node_text(ask, rooms, " now")};
}

}  // namespace troupe::scheduler
