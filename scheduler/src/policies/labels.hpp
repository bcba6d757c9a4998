#pragma once

#include <span>
#include <string>
#include <vector>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// True if `labels` has all that are wanted.
bool matches(const Labels& labels, const Labels& wanted);

std::vector<Candidate> with_labels(const Labels& wanted, std::span<const Candidate> candidates);

/// "no node has zone=b; the closest is 'a' (node 1) with zone=a"
std::string explain_labels(const Labels& wanted, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
