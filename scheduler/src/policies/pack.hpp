#pragma once

#include <span>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// All processes on as few nodes as can be, or none of them. As they all need the same, taking the
/// nodes with most room first is optimal; the last one is the fullest that holds the rest, so that
/// a single process goes to the fullest node that fits it. Pure. Cost: O(nodes log nodes).
Placement place_packed(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
