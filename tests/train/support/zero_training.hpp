#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

/// Trainings whose optimizer's state may be cut, on CPUs and GPUs. To be used in forked ranks only.
namespace troupe::testing {

inline train::ContextOptions options_with(int stage, bool find_unused = false) {
  auto options = small_buckets(find_unused);
  options.zero.stage = stage;
  return options;
}

inline torch::optim::Adam adam(Net& net, bool amsgrad = false) {
  return torch::optim::Adam(net->parameters(),
                            torch::optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(amsgrad));
}
inline torch::optim::AdamW adamw(Net& net) {
  return torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(0.01));
}
inline torch::optim::SGD sgd(Net& net, bool nesterov = false) {
  return torch::optim::SGD(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
}

inline std::vector<torch::Tensor> values_of(Net& net) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  return values;
}

inline void expect_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                        double tolerance, const std::string& what) {
  expect(a.size() == b.size(), what + ": as many parameters");
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect(torch::allclose(a[i], b[i], tolerance, tolerance), [&] {
      return fmt::format("{}: parameter {} differs by {}", what, i,
                         (a[i] - b[i]).abs().max().item<double>());
    });
  }
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
  const Scratch scratch;
  const auto file = (scratch.path() / "values.pt").string();
  auto failed = failures(gang.run([&](GangContext& ranks) {
    TestMember member(ranks);
    train::Context ctx(member, options_with(0, find_unused));
    const auto values = training(ctx);
    if (ctx.rank() == 0) torch::save(values, file);
  }));
  if (!failed.empty()) return "without ZeRO: " + failed;
  return failures(gang.run([&](GangContext& ranks) {
    TestMember member(ranks);
    train::Context ctx(member, options_with(stage, find_unused));
    std::vector<torch::Tensor> expected;
    torch::load(expected, file);
    expect_same(training(ctx), expected, tolerance, "with ZeRO");
  }));
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
