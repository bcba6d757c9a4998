#pragma once

#include <span>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// Where one process goes: the fullest candidate with room for it, with Strategy::Spread the
/// emptiest, and what needs nothing to the one with the fewest light processes for its CPUs; of
/// equals the first. nullptr where none has room. Labels are the caller's. Pure. Cost:
/// O(candidates), and no allocation.
const Candidate* place_single(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
