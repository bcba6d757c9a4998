#pragma once

#include <span>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// The processes on as many nodes as can be, evenly: one by one to the node that has got fewest so
/// far, of these to the emptiest. A single process goes to the emptiest node. Pure. Cost: O((nodes
/// + count) log nodes).
Placement place_spread(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
