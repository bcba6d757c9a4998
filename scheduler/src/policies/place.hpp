#pragma once

#include <optional>
#include <span>
#include <string>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// The policies put together: what is wrong with the need itself, labels, whether a single process
/// has a node at all, then the strategy. Pure; complete if it is given all nodes. Cost: that of the
/// strategy.
Placement place(const Ask& ask, std::span<const Candidate> candidates);

/// What no cluster could give: "gpu 1.5 is neither a part of one GPU nor a whole number".
std::optional<std::string> fault(const Need& need);

}  // namespace troupe::scheduler
