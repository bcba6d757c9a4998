#pragma once

#include <troupe/train/context_options.hpp>

namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// Throws std::invalid_argument for a value that is none of LearningRateScaling's.
double scale_of(LearningRateScaling scaling, int ranks);

/// Of each group, and of groups that are added without options of their own. Throws
/// std::invalid_argument for an optimizer whose options have no learning rate, unless `factor` is
/// 1.
void multiply_learning_rates(torch::optim::Optimizer& optimizer, double factor);

/// The same of each group alone: what a checkpoint has are the options of groups.
void multiply_rates_of_groups(torch::optim::Optimizer& optimizer, double factor);

}  // namespace troupe::train
