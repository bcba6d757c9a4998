#pragma once

#include <span>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// Each process on a node of its own, the fullest that fit, so that emptier ones stay free for
/// more. Pure. Cost: O(nodes log nodes).
Placement place_strictly_spread(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
