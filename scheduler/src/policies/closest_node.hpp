#pragma once

#include <span>
#include <string>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// "the closest is 'a' (node 2) with gpu 1: lacks gpu 3", of what is free now. The closest is the
/// node that lacks the fewest kinds of resources, and of these the least in proportion to the need;
/// ties go to the first.
std::string closest_now(const Ask& ask, std::span<const Candidate> candidates);
/// The same of what would be free with nothing on the nodes.
std::string closest_idle(const Ask& ask, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
