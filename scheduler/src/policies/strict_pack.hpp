#pragma once

#include <span>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// All processes on one node, the fullest that has room for all. Pure. Cost: O(nodes).
Placement place_strictly_packed(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
