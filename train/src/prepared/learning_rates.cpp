#include "prepared/learning_rates.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "zero/optimizer/optimizer_kind.hpp"

namespace troupe::train {

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
  std::vector<torch::optim::OptimizerOptions*> all{&optimizer.defaults()};
  for (auto& group : optimizer.param_groups()) all.push_back(&group.options());
  for (auto* options : all) {
    try {
      options->set_lr(options->get_lr() * factor);
    } catch (const c10::Error&) {  // of OptimizerOptions that do not override them
      throw std::invalid_argument(
          fmt::format("the options of a {} have no learning rate that could be multiplied: leave "
                      "ContextOptions::scale_learning_rates at None",
                      OptimizerKind::name_of(optimizer)));
    }
  }
}

}  // namespace troupe::train
