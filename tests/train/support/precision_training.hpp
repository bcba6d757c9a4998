#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <troupe/train/context.hpp>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/test_member.hpp"
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

struct Folders {
  fs::path storage = {};  ///< where the run writes checkpoints; empty: nowhere
  fs::path from = {};     ///< the checkpoint that the run continues from; empty: none
};

/// Runs a function in each rank of a gang, with the rank's context. -> failures() of the ranks.
inline std::string run(int ranks, const ContextOptions& options,
                       const std::function<void(Context&)>& rank, const Folders& folders = {}) {
  return failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
    TestMember member(gang, folders.storage, folders.from);
    Context ctx(member, options);
    rank(ctx);
  }));
}

}  // namespace precision_training
