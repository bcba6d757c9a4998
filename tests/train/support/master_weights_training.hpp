#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "checkpoint/directory.hpp"
#include "checkpoint/restoring/saved_files.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/precision_training.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

/// Trainings with MixedPrecision::master_weights, and the same training written out by hand. To be
/// used in forked ranks only.
namespace master_weights_training {

using namespace precision_training;

inline constexpr double kScale = 1024;

/// The loss scale is fixed.
inline ContextOptions options_with_masters(Type type, int stage = 0, bool master_weights = true) {
  return options_of(type, stage, {.fixed = kScale}, master_weights);
}

inline at::ScalarType scalar(Type type) {
  return type == Type::BFloat16 ? torch::kBFloat16 : torch::kHalf;
}

/// The loss over a rank's part of the rows, under autocast.
inline torch::Tensor loss_on(Context& ctx, Net& net, std::uint64_t batch, int rank, int ranks) {
  const auto like = torch::dtype(torch::kFloat32).device(ctx.device());
  const auto x = part(rows(kRows, kWidths.front(), 10 + batch), rank, ranks).to(like);
  const auto y = part(rows(kRows, kWidths.back(), 20 + batch), rank, ranks).to(like);
  const auto autocast = ctx.autocast();
  return (net->forward(x).to(torch::kFloat32) - y).square().mean();
}

inline std::unique_ptr<optim::Optimizer> plain_adam_of(std::vector<torch::Tensor> parameters) {
  return std::make_unique<optim::Adam>(adam_of(std::move(parameters)));
}
inline std::unique_ptr<optim::Optimizer> plain_sgd_of(std::vector<torch::Tensor> parameters) {
  return std::make_unique<optim::SGD>(std::move(parameters), 0.5);
}

/// The training as a program without Troupe has it, with a model of the smaller type and an
/// optimizer of its values in float32. The ranks' gradients are averaged in float32, and rounded
/// once.
struct ByHand {
  ByHand(const Context& ctx, Type type, decltype(&plain_adam_of) make = plain_adam_of)
      : scale(type == Type::Float16 ? kScale : 1), net(float_net()) {
    net->to(ctx.device());
    for (const auto& parameter : net->parameters())
      masters.push_back(parameter.detach().clone().requires_grad_());
    net->to(scalar(type));
    optimizer = make(masters);
  }

  void step(Context& ctx, const std::vector<std::uint64_t>& batches, int ranks,
            double max_norm = 0) {
    const auto parameters = net->parameters();
    std::vector<torch::Tensor> sums(masters.size());
    for (int rank = 0; rank < ranks; ++rank) {
      net->zero_grad();
      for (const auto batch : batches) (loss_on(ctx, net, batch, rank, ranks) * scale).backward();
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto gradient = parameters[i].grad().to(torch::kFloat32);
        sums[i] = rank == 0 ? gradient : sums[i] + gradient;
      }
    }
    const torch::NoGradGuard no_grad;
    double squares = 0;
    for (std::size_t i = 0; i < masters.size(); ++i) {
      masters[i].mutable_grad() = rounded(sums[i] / ranks) / scale;
      squares += std::pow(masters[i].grad().norm().item<double>(), 2);
    }
    norm = std::sqrt(squares);
    for (auto& master : masters) {
      if (max_norm == 0 || norm <= max_norm) break;
      master.mutable_grad().mul_(max_norm / norm);
      // Without a loss scale the parameters' own gradients are clipped.
      if (scale == 1) master.mutable_grad() = rounded(master.grad());
    }
    optimizer->step();
    for (std::size_t i = 0; i < masters.size(); ++i) parameters[i].copy_(masters[i]);
  }

  torch::Tensor rounded(const torch::Tensor& tensor) const {
    return tensor.to(net->parameters().front().scalar_type()).to(torch::kFloat32);
  }

  double scale;
  double norm = 0;
  Net net;
  std::vector<torch::Tensor> masters;
  std::unique_ptr<optim::Optimizer> optimizer;
};

/// One step of a training in which every rank has all rows, so that any number of ranks trains
/// alike.
inline void same_step(Context& ctx, Net& net, optim::Optimizer& optimizer, std::uint64_t batch) {
  optimizer.zero_grad();
  ctx.scaled(loss_on(ctx, net, batch, 0, 1)).backward();
  optimizer.step();
}

/// The parameters in the newest checkpoint, in which they are of float32.
inline std::vector<torch::Tensor> saved_in(const fs::path& storage) {
  const auto newest = latest_checkpoint(storage);
  const train::SavedFiles files(newest);
  for (const auto& [name, tensor] : files.manifest().models[0].tensors)
    expect(name_of(tensor.type) == "F32", name + " is of float32 in a checkpoint");
  auto net = float_net();
  train::load(net, newest);
  return values_of(net);
}

/// On rank 0: the newest checkpoint has these values, in float32.
inline void expect_saved(const Context& ctx, const fs::path& storage,
                         const std::vector<torch::Tensor>& values, double tolerance = 0) {
  if (ctx.rank() != 0) return;
  const auto saved = saved_in(storage);
  expect_same(saved, in_main_memory(values), tolerance, "the values in the checkpoint");
}

}  // namespace master_weights_training
