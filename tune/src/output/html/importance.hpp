#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// How much each searched field decides whether a trial is among the best tenth: PED-ANOVA
/// (Watanabe, Bansal and Hutter, 2023, arXiv 2304.10255, section 4). Of each field the density of
/// the best trials is compared with that of all: the Pearson divergence of the two, among the trials
/// that have the field. The parts sum to 1; the largest first. Without fields that fewer than 10
/// trials with a value have. Cost: O(trials * fields *
/// 50).
std::vector<std::pair<std::string, double>> importance(const SearchSpace& space,
                                                       const Objective& objective,
                                                       const std::vector<Trial>& trials);

}  // namespace troupe::tune
