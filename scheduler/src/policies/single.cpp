#include "policies/single.hpp"

#include <algorithm>

namespace troupe::scheduler {
namespace {

const Candidate* lightest(std::span<const Candidate> candidates) {
  const auto found = std::ranges::min_element(
      candidates, [](const Candidate& a, const Candidate& b) { return a.light < b.light; });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace

const Candidate* place_single(const Ask& ask, std::span<const Candidate> candidates) {
  if (candidates.size() == 1)
    return candidates[0].free->fits(ask.each.resources) ? &candidates[0] : nullptr;
  if (ask.each.resources.empty()) return lightest(candidates);
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
