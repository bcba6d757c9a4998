#include "run/launch/slots.hpp"

#include <cassert>

namespace troupe::tune {

std::vector<Place> Slots::take(TrialId trial, const std::vector<std::string>& nodes) {
  assert(!held_.contains(trial));
  std::vector<Place> places;
  for (const auto& node : nodes) {
    auto& taken = taken_[node];
    int slot = 0;
    for (const int used : taken) {
      if (used != slot) break;
      ++slot;
    }
    taken.insert(slot);
    places.push_back({node, slot});
  }
  return held_[trial] = std::move(places);
}

void Slots::give_back(TrialId trial) {
  const auto held = held_.extract(trial);
  if (!held) return;
  for (const auto& [node, slot] : held.mapped()) taken_[node].erase(slot);
}

}  // namespace troupe::tune
