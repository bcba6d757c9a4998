#pragma once

#include <cstddef>
#include <vector>

#include "searchers/cmaes/cma.hpp"

namespace troupe::tune {

/// Moves the mean and the spread of each whole-numbered coordinate so that a draw leaves the cell of
/// the mean with a probability of 1/(d lambda) at least: on the one side that there is where the
/// mean is in the first or the last cell, else half of it on each side (Hamano et al., 2022, arXiv
/// 2205.13482, section 4.2). Real coordinates, whose `cells` are empty, stay as they are.
void keep_margin(CmaState& state, const std::vector<CellOf>& cells, std::size_t lambda);

}  // namespace troupe::tune
