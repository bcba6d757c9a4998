#include "policies/place.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "policies/closest_node.hpp"
#include "policies/labels.hpp"
#include "policies/pack.hpp"
#include "policies/single.hpp"
#include "policies/spread.hpp"
#include "policies/strict_pack.hpp"
#include "policies/strict_spread.hpp"

namespace troupe::scheduler {
namespace {

Placement by_strategy(const Ask& ask, std::span<const Candidate> candidates) {
  switch (ask.strategy) {
    case Strategy::Pack:
      return place_packed(ask, candidates);
    case Strategy::Spread:
      return place_spread(ask, candidates);
    case Strategy::StrictPack:
      return place_strictly_packed(ask, candidates);
    case Strategy::StrictSpread:
      return place_strictly_spread(ask, candidates);
  }
  return Impossible{"the strategy is unknown"};
}

}  // namespace

Placement place(const Ask& ask, std::span<const Candidate> candidates) {
  if (auto wrong = fault(ask.each)) return Impossible{*wrong};
  std::vector<Candidate> matching;
  if (!ask.each.labels.empty()) {
    matching = with_labels(ask.each.labels, candidates);
    if (matching.empty()) return Impossible{explain_labels(ask.each.labels, candidates)};
    candidates = matching;
  }
  const auto& need = ask.each.resources;
  if (std::ranges::none_of(candidates, [&](const Candidate& c) { return c.idle->fits(need); })) {
    return Impossible{
        fmt::format("no node has {}; {}", to_string(ask.each), closest_idle(ask, candidates))};
  }
  if (ask.count == 1) {
    if (const auto* home = place_single(ask, candidates)) return Chosen{{home->node}};
  }
  return by_strategy(ask, candidates);
}

std::optional<std::string> fault(const Need& need) {
  const auto gpu = need.resources.of(kGpu);
  if (gpu <= Amount::whole(1) || gpu.is_whole()) return std::nullopt;
  return fmt::format("gpu {} is neither a part of one GPU nor a whole number of them", gpu.units());
}

}  // namespace troupe::scheduler
