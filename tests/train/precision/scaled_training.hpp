#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/precision_training.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

/// Trainings under autocast and with a loss scale, on any device. To be used in forked ranks only.
namespace precision_training {

/// Two batches for each step, and clipping, which would be wrong with gradients that are not
/// divided.
inline std::vector<torch::Tensor> train_scaled(Context& ctx) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(adam(net));
  for (std::uint64_t step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    {
      const auto no_sync = ctx.no_sync();
      ctx.scaled(loss_of(net, ctx.rank(), ctx.world_size(), 2 * step)).backward();
    }
    ctx.scaled(loss_of(net, ctx.rank(), ctx.world_size(), 2 * step + 1)).backward();
    if (step % 2 == 0) ctx.clip_grad_norm(optimizer, 0.5);
    optimizer.step();
  }
  return whole_values(ctx, net);
}

/// Ranks that have all rows each train as one process in float32 does, but for rounding.
inline void expect_autocast(Context& ctx, Type type) {
  const auto device = ctx.device();
  const auto like = torch::dtype(torch::kFloat32).device(device);
  const auto expected = type == Type::BFloat16 ? torch::kBFloat16 : torch::kHalf;
  Net made(kWidths, 5);
  made->to(torch::kFloat32);
  auto net = ctx.prepare(made);
  auto optimizer = ctx.prepare(adam(net));
  const auto x = rows(kRows, kWidths.front(), 10).to(like);
  const auto y = rows(kRows, kWidths.back(), 20).to(like);
  Net plain(kWidths, 5);  // as all ranks have all rows, they train as one
  plain->to(device, torch::kFloat32);
  auto plain_optimizer = adam(plain);
  double last = 0, expected_last = 0;
  for (int step = 0; step < 30; ++step) {
    torch::Tensor loss;
    {
      const auto autocast = ctx.autocast();
      const auto out = net->forward(x);
      expect(out.scalar_type() == expected, "the layers compute in the smaller type");
      {
        const auto inner = ctx.autocast();
        expect(net->layers[0]->forward(x).scalar_type() == expected, "also inside of another");
      }
      expect(at::autocast::is_autocast_enabled(device.type()), "the outer one goes on");
      loss = torch::nn::functional::mse_loss(out, y);
      expect(loss.scalar_type() == torch::kFloat32, "the loss is computed in float32");
    }
    optimizer.zero_grad();
    ctx.scaled(loss).backward();
    optimizer.step();
    last = loss.item<double>();
    plain_optimizer.zero_grad();
    loss = (plain->forward(x) - y).square().mean();
    loss.backward();
    plain_optimizer.step();
    expected_last = loss.item<double>();
  }
  expect(!at::autocast::is_autocast_enabled(device.type()), "it ends with the guard");
  expect(std::abs(last - expected_last) < 0.02 * expected_last,
         [&] { return fmt::format("a loss of {}, and {} in float32", last, expected_last); });
  expect(last != expected_last, "the rounding of the smaller type shows");
  expect(ctx.skipped_steps() == 0, "no step is left out");
  const auto whole = ctx.gathered(net);
  for (const auto& parameter : net->parameters())
    expect(parameter.scalar_type() == torch::kFloat32, "the parameters are of float32");
}

/// Of three steps the second one has a gradient on rank 1 that is not finite.
inline void expect_step_left_out(Context& ctx, double wrong) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(adam(net));
  const auto step = [&](bool is_wrong) {
    optimizer.zero_grad();
    auto loss = loss_of(net, ctx.rank(), ctx.world_size());
    if (is_wrong && ctx.rank() == 1) loss = loss * wrong;
    ctx.scaled(loss).backward();
    if (is_wrong) ctx.clip_grad_norm(optimizer, 1);
    optimizer.step();
  };
  step(false);
  const auto before = whole_values(ctx, net);
  step(true);
  expect_same(whole_values(ctx, net), before, 0, "after the step that is left out");
  expect(ctx.skipped_steps() == 1, "it is counted");
  step(false);
  expect(ctx.loss_scale() == 512, [&] { return fmt::format("scale {}", ctx.loss_scale()); });
  const auto after = whole_values(ctx, net);
  expect(!torch::equal(after[0], before[0]), "the next step is made");
  for (const auto& each : after) expect(each.isfinite().all().item<bool>(), "and finite");
}

}  // namespace precision_training
