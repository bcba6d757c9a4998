#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "checkpoint/directory.hpp"
#include "support/forked_gang.hpp"
#include "support/master_weights_training.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/scratch.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

/// What trainings with master weights promise, on any device. To be used in forked ranks only, but
/// for run_with_storage(). `storage`: of the run. `tolerance`: 0 where two runs of one operator
/// have the same bits, wherever its tensors lie in memory, which cuBLAS does not promise.
namespace master_weights_training {

/// One backward pass for each batch, over this rank's part of the rows. All but the last one are
/// under no_sync().
inline void backward(Context& ctx, Net& net, const std::vector<std::uint64_t>& batches) {
  const auto one = [&](std::uint64_t batch) {
    ctx.scaled(loss_on(ctx, net, batch, ctx.rank(), ctx.world_size())).backward();
  };
  {
    const auto no_sync = ctx.no_sync();
    for (std::size_t i = 0; i + 1 < batches.size(); ++i) one(batches[i]);
  }
  one(batches.back());
}

inline void scaled_step(Context& ctx, Net& net, optim::Optimizer& optimizer,
                        const std::vector<std::uint64_t>& batches) {
  optimizer.zero_grad();
  backward(ctx, net, batches);
  optimizer.step();
}

inline void expect_trained_as_by_hand(Context& ctx, Type type, const fs::path& storage,
                                      double tolerance = 0) {
  ByHand by_hand(ctx, type);
  auto net = ctx.prepare(float_net());
  auto optimizer = ctx.prepare(adam(net));
  for (std::uint64_t number = 0; number < 6; ++number) {
    std::vector<std::uint64_t> batches{number};
    if (number % 2 == 1) batches.push_back(10 + number);
    scaled_step(ctx, net, optimizer, batches);
    by_hand.step(ctx, batches, ctx.world_size());
    // What a checkpoint does to the parameters must not show afterwards.
    if (number == 2) ctx.checkpoint(net, optimizer);
  }
  const auto values = whole_values(ctx, net);
  expect_same(values, values_of(by_hand.net), tolerance, "the parameters");
  for (const auto& value : values)
    expect(value.scalar_type() == scalar(type), "they are of the smaller type");
  ctx.checkpoint(net, optimizer);
  expect_saved(ctx, storage, by_hand.masters, tolerance);
}

inline void expect_masters_clipped(Context& ctx, Type type, const fs::path& storage,
                                   double tolerance = 1e-4) {
  ByHand by_hand(ctx, type, plain_sgd_of), unclipped(ctx, type, plain_sgd_of);
  auto net = ctx.prepare(float_net());
  auto optimizer = ctx.prepare(optim::SGD(net->parameters(), 0.5));
  for (std::uint64_t number = 0; number < 4; ++number) {
    optimizer.zero_grad();
    backward(ctx, net, {number});
    const auto norm = ctx.clip_grad_norm(optimizer, 0.05);
    optimizer.step();
    by_hand.step(ctx, {number}, 2, 0.05);
    unclipped.step(ctx, {number}, 2);
    expect(norm > 0.05 && std::abs(norm - by_hand.norm) < 1e-3 * norm,
           [&] { return fmt::format("a norm of {}, not {}", norm, by_hand.norm); });
  }
  ctx.checkpoint(net, optimizer);
  expect_saved(ctx, storage, by_hand.masters, tolerance);
  expect(!torch::allclose(by_hand.masters[0], unclipped.masters[0], 1e-2, 1e-2), "it matters");
}

inline void expect_masters_left_as_they_were(Context& ctx, const fs::path& storage,
                                             double tolerance = 0) {
  ByHand by_hand(ctx, Type::Float16);
  auto net = ctx.prepare(float_net());
  auto optimizer = ctx.prepare(adam(net));
  for (std::uint64_t number = 0; number < 4; ++number) {
    scaled_step(ctx, net, optimizer, {number});
    by_hand.step(ctx, {number}, 2);
    optimizer.zero_grad();
    auto loss = loss_on(ctx, net, number, ctx.rank(), 2);
    if (number % 2 == 0 && ctx.rank() == 1) loss = loss * std::nan("");
    ctx.scaled(loss).backward();
    ctx.clip_grad_norm(optimizer, 1e-3);
    if (number % 2 == 0)
      optimizer.step();  // which is left out
    else
      optimizer.zero_grad();  // drops what was clipped
  }
  expect(ctx.skipped_steps() == 2, "those with a NaN");
  ctx.checkpoint(net, optimizer);
  expect_saved(ctx, storage, by_hand.masters, tolerance);
}

/// In bfloat16.
inline void expect_small_updates_add_up(Context& ctx) {
  auto layer = ctx.prepare(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  {
    const torch::NoGradGuard no_grad;
    layer->weight.fill_(1);
  }
  auto optimizer = ctx.prepare(optim::SGD(layer->parameters(), 0.001));
  for (int i = 0; i < 10; ++i) {
    optimizer.zero_grad();
    layer->weight.sum().backward();
    optimizer.step();  // 1 - 0.001 is 1 in bfloat16
  }
  expect(std::abs(layer->weight.item<double>() - 0.99) < 0.003,
         [&] { return fmt::format("{}", layer->weight.item<double>()); });
}

/// In float16.
inline void expect_small_gradient_kept(Context& ctx, const fs::path& storage) {
  torch::nn::Linear made(torch::nn::LinearOptions(3, 1).bias(false));
  {
    const torch::NoGradGuard no_grad;
    made->weight.zero_();
  }
  auto layer = ctx.prepare(made);
  auto optimizer = ctx.prepare(optim::SGD(layer->parameters(), 1.0));
  ctx.scaled(layer->weight.to(torch::kFloat32).sum() * 2e-8).backward();
  optimizer.step();
  ctx.checkpoint(layer, optimizer);
  if (ctx.rank() != 0) return;
  torch::nn::Linear saved(torch::nn::LinearOptions(3, 1).bias(false));
  troupe::train::load(saved, latest_checkpoint(storage));
  expect(torch::allclose(saved->weight, torch::full({1, 3}, -2e-8), 1e-2, 0),
         [&] { return fmt::format("{}", saved->weight[0][0].item<double>()); });
}

/// What a rank does in a run that has a storage.
using Check = std::function<void(Context&, const fs::path& storage)>;

/// Runs a check in each rank of a gang, with an empty storage. -> failures() of the ranks. `run`:
/// run_on_gpu(), or a function that runs ranks on another device as run_on_gpu() does. Not in a
/// forked rank.
template <class Run>
std::string run_with_storage(Run run, int ranks, const ContextOptions& options,
                             const Check& check) {
  const Scratch scratch;
  return run(
      ranks, options, [&](Context& ctx) { check(ctx, scratch.path()); },
      Folders{.storage = scratch.path()});
}

}  // namespace master_weights_training
