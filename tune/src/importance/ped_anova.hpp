#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/trial.hpp>

#include "searchers/axis.hpp"

namespace troupe::tune {

/// How much each field decides whether a trial is among the best tenth: PED-ANOVA (Watanabe, Bansal
/// and Hutter, 2023, arXiv 2304.10255, section 4). Of each field the density of the best trials is
/// compared with that of all: the Pearson divergence of the two, among the trials that have the
/// field. In the order of the axes; the parts sum to 1, or are all 0. None for a field that fewer
/// than `least` trials have. Each trial has a value. Cost: O(trials * fields * 50).
std::vector<std::optional<double>> ped_anova(const Axes& axes, const Objective& objective,
                                             std::vector<const Trial*> trials, std::size_t least);

}  // namespace troupe::tune
