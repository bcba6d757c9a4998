#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/optim/schedulers/step_lr.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

/// Trainings whose optimizer's state may be cut, on CPUs and GPUs. To be used in forked ranks only.
namespace troupe::testing {

inline train::ContextOptions options_with(int stage, bool find_unused = false) {
  auto options = small_buckets(find_unused);
  options.zero.stage = stage;
  return options;
}

/// One step of a function that knows nothing of ZeRO.
inline void step(train::Context& ctx, Net& net, torch::optim::Optimizer& optimizer,
                 std::uint64_t number) {
  optimizer.zero_grad();
  loss_of(net, ctx.rank(), ctx.world_size(), number).backward();
  optimizer.step();
}

/// What a rank does, and the parameters that it then has.
using Training = std::function<std::vector<torch::Tensor>(train::Context&)>;

/// Trains with an optimizer, whose learning rate falls, for six steps.
template <class MakeOptimizer>
Training training_with(MakeOptimizer make) {
  return [make](train::Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(make(net));
    torch::optim::StepLR schedule(optimizer, 2, 0.5);
    for (std::uint64_t i = 0; i < 6; ++i) {
      step(ctx, net, optimizer, i);
      schedule.step();
    }
    return values_of(net);
  };
}

/// Runs it without ZeRO and with, and compares the parameters of each rank with those that rank 0
/// has without.
inline std::string difference(int stage, const Training& training, const ForkedGang& gang,
                              bool find_unused = false, double tolerance = 0) {
  const KeptValues without;
  const auto failed = run_in(gang, options_with(0, find_unused),
                             [&](train::Context& ctx) { without.keep(ctx, training(ctx)); });
  if (!failed.empty()) return "without ZeRO: " + failed;
  return run_in(gang, options_with(stage, find_unused), [&](train::Context& ctx) {
    without.expect_same_as(training(ctx), tolerance, "with ZeRO");
  });
}

/// The error that every rank of a gang gets.
inline std::string error_of(const std::function<void(train::Context&)>& rank, int stage = 1,
                            int ranks = 2) {
  const auto outcomes = ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
    TestMember member(gang);
    train::Context ctx(member, options_with(stage));
    rank(ctx);
  });
  for (const auto& outcome : outcomes) {
    if (outcome.message != outcomes.front().message) return "the ranks' errors differ";
  }
  return outcomes.front().type + ": " + outcomes.front().message;
}

}  // namespace troupe::testing
