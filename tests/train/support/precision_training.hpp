#pragma once

#include <filesystem>

#include <torch/optim/optimizer.h>
#include <troupe/train/context.hpp>

#include "support/catch.hpp"
#include "support/rank_contexts.hpp"
#include "support/zero_training.hpp"

/// Trainings with ContextOptions::mixed_precision.
namespace precision_training {

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
namespace fs = std::filesystem;
namespace optim = torch::optim;
using Type = MixedPrecision::Type;

inline ContextOptions options_of(Type type, int stage = 0,
                                 LossScaleOptions loss_scale = {.initial = 1024},
                                 bool master_weights = false) {
  auto options = options_with(stage);
  options.mixed_precision = {
      .type = type, .loss_scale = loss_scale, .master_weights = master_weights};
  return options;
}

}  // namespace precision_training
