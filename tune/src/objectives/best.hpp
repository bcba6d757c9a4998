#pragma once

#include <optional>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/results.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// The best trial, the one with the lowest id of equals; none: no trial is a candidate. Cost: O(n).
std::optional<TrialId> best_of(const std::vector<Trial>& trials, const Objective& objective,
                               const BestOf& which = {});

}  // namespace troupe::tune
