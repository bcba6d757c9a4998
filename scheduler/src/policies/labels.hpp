#pragma once

#include <span>
#include <string>
#include <vector>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// True if `labels` has all that are wanted.
bool matches(const Labels& labels, const Labels& wanted);

std::vector<Candidate> with_labels(const Labels& wanted, std::span<const Candidate> candidates);

/// "no node has label zone=b; 'a' (node 1) has zone=a": which of the wanted labels no node has, or that no node has all.
std::string explain_labels(const Labels& wanted, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
