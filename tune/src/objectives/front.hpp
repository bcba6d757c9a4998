#pragma once

#include <optional>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/trial.hpp>

#include "objectives/dominance.hpp"

namespace troupe::tune {

/// The value of each objective in one report; empty where it lacks one, or there are no objectives.
std::vector<double> values_in(const std::vector<Objective>& objectives, const Metrics& metrics);

/// How far one report is beyond all limits together; none: it lacks a metric of one.
std::optional<double> violation_in(const std::vector<Constraint>& constraints,
                                   const Metrics& metrics);

/// Where a value is missing or not finite, the worst in every objective.
Scores scores_of(const std::vector<Objective>& objectives, const std::vector<double>& values);

/// The trials that keep to all constraints and that no other such one dominates, as
/// Results::pareto_front() has them; `objectives` are all, or none where `only` is the only one. Cost: O(m n f) for a front of f trials.
std::vector<TrialId> pareto_front(const std::vector<Trial>& trials, const Objective& only,
                                  const std::vector<Objective>& objectives);

}  // namespace troupe::tune
