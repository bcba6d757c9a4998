#include "policies/single.hpp"

namespace troupe::scheduler {

const Candidate* place_single(const Ask& ask, std::span<const Candidate> candidates) {
  if (candidates.size() == 1)
    return candidates[0].free->fits(ask.each.resources) ? &candidates[0] : nullptr;
  const Candidate* best = nullptr;
  std::size_t best_slots = 0;
  for (const auto& candidate : candidates) {
    const auto slots = candidate.free->slots(ask.each.resources, kCountless);
    const bool better = ask.strategy == Strategy::Spread ? slots > best_slots : slots < best_slots;
    if (slots == 0 || (best != nullptr && !better)) continue;
    best = &candidate;
    best_slots = slots;
  }
  return best;
}

}  // namespace troupe::scheduler
