#pragma once

#include <cstddef>
#include <vector>

/// Comparing by several objectives at once. Pure.
namespace troupe::tune {

/// Of one trial, by objective; higher is better, minus infinity the worst; never nan.
using Scores = std::vector<double>;

/// True if `a` is at least as good in every objective, and better in one. Asserts the same length.
bool dominates(const Scores& a, const Scores& b);

/// The places of `all`, front by front: those that none dominates, then those that only members of
/// the first front do, and so on; within a front in their order. The fast non-dominated sort of
/// NSGA-II (Deb et al., 2002, section III-A). Cost: O(m n^2).
std::vector<std::vector<std::size_t>> non_dominated_fronts(const std::vector<Scores>& all);

/// Likewise, where each has a violation of constraints (0: of none, infinite where it failed), by Deb's
/// rule (section VI-A): who violates less comes before, whatever its scores; of those that violate as
/// much, the scores decide. Asserts the same length.
std::vector<std::vector<std::size_t>> non_dominated_fronts(const std::vector<Scores>& all,
                                                           const std::vector<double>& violations);

/// Of each member of a front: the sum over the objectives of the distance between its neighbours, as
/// a part of the front's extent; infinite for the first and the last of each (section III-B). Equal
/// values stand in their order. An objective in which all are equal, or that is not finite, adds
/// nothing. Cost: O(m n log n).
std::vector<double> crowding_distances(const std::vector<Scores>& front);

}  // namespace troupe::tune
