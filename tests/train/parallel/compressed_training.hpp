#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

/// Trainings whose ranks send each other gradients in bfloat16, on any device. To be used in forked
/// ranks only, but for the options.
namespace troupe::testing {

inline train::ContextOptions compressed(int stage = 0, bool find_unused = false) {
  auto options = options_with(stage, find_unused);
  options.data_parallel.compression = train::GradientCompression::BFloat16;
  return options;
}

/// The loss over a rank's part of the rows, in the type and on the device of the net.
inline torch::Tensor loss_in(Net& net, int rank, int ranks, std::uint64_t step = 0) {
  const auto like = net->parameters().front().options().requires_grad(false);
  const auto x = part(rows(kRows, kWidths.front(), 10 + step), rank, ranks).to(like);
  const auto y = part(rows(kRows, kWidths.back(), 20 + step), rank, ranks).to(like);
  return (net->forward(x) - y).square().mean();
}

inline torch::Tensor rounded(const torch::Tensor& tensor) { return tensor.to(torch::kBFloat16); }

/// The gradients of each rank's own loss.
inline std::vector<std::vector<torch::Tensor>> own_gradients(int ranks,
                                                             const torch::TensorOptions& like) {
  std::vector<std::vector<torch::Tensor>> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    Net net(kWidths, 5);
    net->to(like.device(), torch::typeMetaToScalarType(like.dtype()));
    loss_in(net, rank, ranks).backward();
    auto& own = gradients.emplace_back();
    for (const auto& parameter : net->parameters()) own.push_back(parameter.grad().clone());
  }
  return gradients;
}

/// Of two ranks. `tolerance`: by which a rank's gradient may be another one than that of one
/// process, as part of the largest one.
inline void expect_rounded_average(train::Context& ctx, Net& net, double tolerance) {
  const auto like = torch::dtype(net->parameters().front().dtype()).device(ctx.device());
  const auto own = own_gradients(2, like);
  for (std::size_t i = 0; i < own[0].size(); ++i) {
    const auto sum =
        rounded(own[0][i]).to(torch::kFloat32) + rounded(own[1][i]).to(torch::kFloat32);
    const auto expected = rounded(sum / 2).to(like);
    const auto& gradient = net->parameters()[i].grad();
    const auto largest =
        torch::maximum(own[0][i].abs(), own[1][i].abs()).max().item<double>() * tolerance;
    expect(gradient.dtype() == like.dtype(), "a gradient of the parameter's type");
    expect(torch::equal(gradient, rounded(gradient).to(like)), "it was of bfloat16");
    expect(torch::allclose(gradient, expected, 0, largest), fmt::format("gradient {}", i));
  }
}

inline void expect_rounded_averages(train::Context& ctx, torch::ScalarType type,
                                    double tolerance = 0) {
  Net net(kWidths, 5);
  net->to(type);
  net = ctx.prepare(net);
  for (int round = 0; round < 2; ++round) {
    net->zero_grad(round == 0);
    loss_in(net, ctx.rank(), 2).backward();
    expect_rounded_average(ctx, net, tolerance);
  }
}

/// A model whose gradients are what its loss is given.
struct Weights : torch::nn::Module {
  explicit Weights(const torch::Tensor& like)
      : weights(register_parameter("weights", torch::ones_like(like))) {}
  torch::Tensor weights;
};

/// Gradients about the largest number of bfloat16, on two ranks that have the same.
inline void expect_finite_averages(train::Context& ctx, torch::ScalarType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kLargest = 0x1.fep127;  // of bfloat16
  const double most = type == torch::kFloat64 ? 1e300 : std::numeric_limits<float>::max();
  const auto gradients = torch::tensor({most, -most, 0x1.fffp127, kLargest, 1.0, -kInfinity,
                                        std::numeric_limits<double>::quiet_NaN(), 0.0},
                                       type);
  const auto expected = torch::tensor({kLargest, -kLargest, kLargest, kLargest, 1.0, -kInfinity,
                                       std::numeric_limits<double>::quiet_NaN(), 0.0},
                                      type);
  const auto model = std::make_shared<Weights>(gradients);
  ctx.prepare(model);
  auto optimizer =
      ctx.prepare(torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(1.0)));
  (model->weights * gradients).sum().backward();
  optimizer.step();
  const auto values = ctx.gathered(model);
  expect(torch::allclose(model->weights, 1 - expected, 0, 0, /*equal_nan=*/true),
         fmt::format("finite averages of stage {}", ctx.options().zero.stage));
}

/// Trains for some steps, half of whose gradients accumulate.
inline std::vector<torch::Tensor> trained_compressed(train::Context& ctx, torch::ScalarType type) {
  Net net(kWidths, 5);
  net->to(type);
  net = ctx.prepare(net);
  auto optimizer = ctx.prepare(
      torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
  for (std::uint64_t i = 0; i < 6; ++i) {
    if (i % 2 == 0) {
      optimizer.zero_grad();
      const auto guard = ctx.no_sync();
      loss_in(net, ctx.rank(), ctx.world_size(), i).backward();
    } else {
      loss_in(net, ctx.rank(), ctx.world_size(), i).backward();
      optimizer.step();
    }
  }
  return whole_values(ctx, net);
}

}  // namespace troupe::testing
