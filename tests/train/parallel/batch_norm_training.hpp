#pragma once

#include <cstdint>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>
#include <troupe/train/layers/sync_batch_norm.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/small_training.hpp"

/// A training with SyncBatchNorm, on any device. To be used in forked ranks only, but for the
/// options.
namespace troupe::testing {

inline constexpr double kSameNumbers = 1e-12;

/// For pictures of two channels, 4 x 4. Of one seed.
template <class Norm2d, class Norm1d>
torch::nn::Sequential picture_net() {
  using namespace torch::nn;
  torch::manual_seed(7);
  Sequential net(Conv2d(Conv2dOptions(2, 5, 3).padding(1)), Norm2d(BatchNormOptions(5)), Tanh(),
                 Conv2d(Conv2dOptions(5, 3, 2)), Norm2d(BatchNormOptions(3).momentum(0.3)),
                 Flatten(), Linear(27, 6), Norm1d(BatchNormOptions(6)), Linear(6, 2));
  net->to(torch::kFloat64);
  return net;
}

inline torch::Tensor pictures(std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({12, 2, 4, 4}, torch::kFloat64) * 2 + 1;
}

inline void expect_same_state(const torch::nn::Module& a, const torch::nn::Module& b,
                              double tolerance = kSameNumbers) {
  const auto parameters = b.named_parameters(), buffers = b.named_buffers();
  expect(a.named_parameters().size() == parameters.size() &&
             a.named_buffers().size() == buffers.size(),
         "as many parameters and buffers");
  for (const auto& item : a.named_parameters())
    expect_close(item.value(), parameters[item.key()], tolerance, item.key());
  for (const auto& item : a.named_buffers())
    expect_close(item.value(), buffers[item.key()], tolerance, item.key());
}

inline torch::optim::SGD sgd_of(torch::nn::Sequential& net) {
  return torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

inline train::ContextOptions batch_norm_options(int stage) {
  auto options = small_buckets();
  options.data_parallel.bucket_bytes = 200;
  options.zero.stage = stage;
  return options;
}

/// Ranks train as one process does with LibTorch's layers, over the joined batch.
inline void expect_joined_batch(train::Context& ctx, double tolerance = kSameNumbers) {
  const auto device = ctx.device();
  const auto part_of = [&](const torch::Tensor& all) {
    return part(all, ctx.rank(), ctx.world_size());
  };
  auto net = ctx.prepare(picture_net<train::SyncBatchNorm, train::SyncBatchNorm>());
  auto optimizer = ctx.prepare(sgd_of(net));
  auto plain = picture_net<torch::nn::BatchNorm2d, torch::nn::BatchNorm1d>();
  plain->to(device);
  auto plain_optimizer = sgd_of(plain);
  for (std::uint64_t step = 0; step < 4; ++step) {
    auto all = pictures(step).to(device).requires_grad_();
    auto own = part_of(all.detach()).requires_grad_();
    const auto target = rows(12, 2, 50 + step).to(device);
    optimizer.zero_grad();
    plain_optimizer.zero_grad();
    const auto output = net->forward(own), expected = plain->forward(all);
    (output - part_of(target)).square().mean().backward();
    (expected - target).square().mean().backward();
    expect_close(output, part_of(expected), tolerance, "the output");
    expect_close(own.grad(), part_of(all.grad()) * ctx.world_size(), tolerance,
                 "the input's gradient");
    optimizer.step();
    plain_optimizer.step();
  }
  const auto whole = ctx.gathered(net);
  expect_same_state(*net, *plain, tolerance);
}

}  // namespace troupe::testing
