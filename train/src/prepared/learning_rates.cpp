#include "prepared/learning_rates.hpp"

#include <cmath>
#include <stdexcept>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "zero/optimizer/optimizer_kind.hpp"

namespace troupe::train {
namespace {

void multiply(torch::optim::OptimizerOptions& options, double factor,
              const torch::optim::Optimizer& optimizer) {
  try {
    options.set_lr(options.get_lr() * factor);
  } catch (const c10::Error&) {  // of OptimizerOptions that do not override them
    throw std::invalid_argument(
        fmt::format("the options of a {} have no learning rate that could be multiplied: leave "
                    "ContextOptions::scale_learning_rates at None",
                    OptimizerKind::name_of(optimizer)));
  }
}

}  // namespace

double scale_of(LearningRateScaling scaling, int ranks) {
  switch (scaling) {
    case LearningRateScaling::None:
      return 1;
    case LearningRateScaling::Linear:
      return ranks;
    case LearningRateScaling::SquareRoot:
      return std::sqrt(ranks);
  }
  throw std::invalid_argument(
      fmt::format("ContextOptions::scale_learning_rates is {}, which is no LearningRateScaling",
                  static_cast<int>(scaling)));
}

void multiply_learning_rates(torch::optim::Optimizer& optimizer, double factor) {
  if (factor == 1) return;
  multiply(optimizer.defaults(), factor, optimizer);
  multiply_rates_of_groups(optimizer, factor);
}

void multiply_rates_of_groups(torch::optim::Optimizer& optimizer, double factor) {
  if (factor == 1) return;
  for (auto& group : optimizer.param_groups()) multiply(group.options(), factor, optimizer);
}

}  // namespace troupe::train
