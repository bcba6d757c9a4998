#pragma once

#include <span>
#include <string>
#include <vector>

#include "policies/candidate.hpp"

namespace troupe::scheduler {

/// Whether `labels` has all that are wanted.
bool has_all(const Labels& labels, const Labels& wanted);
inline bool matches(const Labels& labels, const Labels& wanted) {
  return wanted.empty() || has_all(labels, wanted);
}

std::vector<Candidate> with_labels(const Labels& wanted, std::span<const Candidate> candidates);

/// "no node has zone=b; the closest is 'a' (node 1) with zone=a"
std::string explain_labels(const Labels& wanted, std::span<const Candidate> candidates);

}  // namespace troupe::scheduler
