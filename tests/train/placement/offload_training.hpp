#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

/// Trainings whose state may lie in main memory, on any device. To be used in forked ranks only,
/// but for the options.
namespace offload_training {

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Type = MixedPrecision::Type;

inline constexpr ZeroOptions kParameters{
    .stage = 3, .offload_optimizer = true, .offload_parameters = true};

inline ZeroOptions optimizer_of(int stage) { return {.stage = stage, .offload_optimizer = true}; }

/// A smaller type comes with master weights.
inline ContextOptions options_of(ZeroOptions zero, Type type) {
  auto options = small_buckets();
  options.zero = zero;
  options.mixed_precision = {
      .type = type, .loss_scale = {.initial = 1024}, .master_weights = type != Type::Float32};
  return options;
}

/// Over a rank's part of the rows, in the type of the parameters.
inline torch::Tensor loss_in(Context& ctx, Net& net, std::uint64_t batch) {
  const auto like = net->parameters().front();
  const auto of_rank = [&](std::int64_t width, std::uint64_t seed) {
    return part(rows(kRows, width, seed), ctx.rank(), ctx.world_size())
        .to(like.scalar_type())
        .to(ctx.device());
  };
  const auto x = of_rank(kWidths.front(), 10 + batch);
  const auto y = of_rank(kWidths.back(), 20 + batch);
  return (net->forward(x).to(torch::kFloat32) - y.to(torch::kFloat32)).square().mean();
}

using Optimizer = std::unique_ptr<torch::optim::Optimizer>;

template <class O>
Optimizer prepared(Context& ctx, O optimizer) {
  return std::make_unique<PreparedOptimizer<O>>(ctx.prepare(std::move(optimizer)));
}
inline Optimizer prepared_adam(Context& ctx, Net& net) { return prepared(ctx, adam(net, true)); }
inline Optimizer prepared_adamw(Context& ctx, Net& net) { return prepared(ctx, adamw(net)); }
inline Optimizer prepared_sgd(Context& ctx, Net& net) { return prepared(ctx, sgd(net)); }

/// A step of two batches, whose gradients are clipped.
inline void offloaded_step(Context& ctx, Net& net, torch::optim::Optimizer& optimizer,
                           std::uint64_t number) {
  optimizer.zero_grad();
  net->zero_grad();
  {
    const auto guard = ctx.no_sync();
    ctx.scaled(loss_in(ctx, net, 2 * number)).backward();
  }
  ctx.scaled(loss_in(ctx, net, 2 * number + 1)).backward();
  ctx.clip_grad_norm(optimizer, 0.5);
  optimizer.step();
}

/// The average of past gradients that an optimizer has for a parameter.
inline torch::Tensor average_in(const torch::optim::OptimizerParamState& state) {
  if (const auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(&state))
    return adam->exp_avg();
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(&state))
    return adamw->exp_avg();
  return dynamic_cast<const torch::optim::SGDParamState&>(state).momentum_buffer();
}

/// The optimizer has state, which lies where the options say.
inline void expect_in_place(Context& ctx, const torch::optim::Optimizer& optimizer) {
  const bool is_here = !ctx.options().zero.offload_optimizer;
  expect(!optimizer.state().empty(), "the optimizer has state");
  for (const auto& [parameter, state] : optimizer.state()) {
    const auto place = average_in(*state).device();
    expect(is_here ? place == ctx.device() : place.is_cpu(),
           [&] { return "the optimizer's state is on " + place.str(); });
  }
}

/// In float32 on the CPU.
inline std::vector<torch::Tensor> plain_values(Context& ctx, Net& net) {
  auto values = whole_values(ctx, net);
  for (auto& value : values) value = value.to(torch::kCPU, torch::kFloat32);
  return values;
}

inline std::vector<torch::Tensor> trained(Context& ctx, Optimizer (*make)(Context&, Net&)) {
  auto net = ctx.prepare(float_net());
  const auto optimizer = make(ctx, net);
  torch::optim::StepLR schedule(*optimizer, 2, 0.5);
  for (std::uint64_t i = 0; i < 4; ++i) {
    offloaded_step(ctx, net, *optimizer, i);
    schedule.step();
  }
  expect_in_place(ctx, *optimizer);
  return plain_values(ctx, net);
}

}  // namespace offload_training
