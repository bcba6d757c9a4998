#include "policies/candidate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "id_format.hpp"
#include "policies/closest_node.hpp"

namespace troupe::scheduler {
namespace {

std::vector<Room> rooms(const Ask& ask, std::span<const Candidate> candidates,
                        const Capacity* Candidate::*which) {
  std::vector<Room> found;
  for (const auto& candidate : candidates) {
    const auto slots = (candidate.*which)->slots(ask.each.resources, kCountless);
    if (slots > 0) found.push_back({&candidate, slots});
  }
  return found;
}

}  // namespace

std::string to_string(const Candidate& candidate) {
  return fmt::format("'{}' (node {})", *candidate.name, candidate.node);
}

std::vector<Room> rooms_now(const Ask& ask, std::span<const Candidate> candidates) {
  return rooms(ask, candidates, &Candidate::free);
}

std::vector<Room> rooms_idle(const Ask& ask, std::span<const Candidate> candidates) {
  return rooms(ask, candidates, &Candidate::idle);
}

std::size_t total_slots(std::span<const Room> rooms) {
  std::size_t slots = 0;
  for (const auto& room : rooms) slots += room.slots;
  return slots;
}

Waits waits_for_room(const Ask& ask, std::span<const Candidate> candidates) {
  const auto rooms = rooms_now(ask, candidates);
  if (rooms.empty())
    return {fmt::format("{} is free on no node now; {}", to_string(ask.each),
                        closest_now(ask, candidates))};
  return {fmt::format("{} of its {} ranks of {} have room now",
                      std::min(total_slots(rooms), ask.count), ask.count, to_string(ask.each))};
}

std::optional<Placement> lack_of_room(const Ask& ask, std::span<const Candidate> candidates,
                                      std::span<const Room> rooms) {
  if (total_slots(rooms) >= ask.count) return std::nullopt;
  const auto most = total_slots(rooms_idle(ask, candidates));
  if (most >= ask.count) return waits_for_room(ask, candidates);
  return Impossible{fmt::format("all nodes together hold {} of the {} ranks of {}, even when idle",
                                most, ask.count, to_string(ask.each))};
}

}  // namespace troupe::scheduler
