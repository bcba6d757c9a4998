#pragma once

#include <span>
#include <vector>

#include "importance/forest.hpp"

namespace troupe::tune {

/// What part of the variance of a regression tree each field alone explains: the functional analysis
/// of variance of Hutter, Hoos and Leyton-Brown, 2014, "An efficient approach for assessing
/// hyperparameter importance", for subsets of one field. The leaves of a tree are boxes that fill
/// the space. The marginal of a field at a value is the mean of the tree over all others, each
/// value of a number's [0, 1] and each category being equally likely: the sum over the leaves whose
/// box has the value, each weighted with what its box holds of the other fields. A field's part is
/// the variance of its marginal divided by that of the tree.
///
/// In the order of the fields, each in [0, 1]; what the sum lacks of 1 is decided by several fields
/// together. All 0 where the tree is the same everywhere. Cost: O(leaves * (fields * log(leaves) +
/// categories)).
std::vector<double> parts_of_tree(const Tree& tree, const std::vector<ForestField>& fields);

/// The parts of the variance that each field alone explains, of a random forest that is fitted to
/// the samples: the mean over the trees that are not the same everywhere. All 0 where there is none,
/// as of values that are all equal, or of fewer than two samples. Of any finite values: they are
/// brought to [0, 1] first, which changes no part. Deterministic; cost as for grown_forest().
std::vector<double> fanova(const std::vector<ForestField>& fields, std::span<const double> values,
                           const ForestOptions& options = {});

}  // namespace troupe::tune
