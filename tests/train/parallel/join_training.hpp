#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/small_training.hpp"

/// A training of ranks with different numbers of batches, on any device. To be used in forked ranks
/// only.
namespace troupe::testing {

using Counts = std::vector<int>;  // of batches, by rank
using Pair = std::pair<torch::Tensor, torch::Tensor>;

/// In main memory.
inline Pair pair_of(int rank, int number) {
  const auto seed = static_cast<std::uint64_t>(100 * (rank + 1) + number);
  return {rows(4, kWidths.front(), seed), rows(4, kWidths.back(), seed + 50)};
}

inline std::vector<Pair> pairs_of(int rank, const Counts& counts) {
  std::vector<Pair> pairs;
  for (int i = 0; i < counts[static_cast<std::size_t>(rank)]; ++i)
    pairs.push_back(pair_of(rank, i));
  return pairs;
}

inline torch::Tensor loss_of_pair(Net& net, const Pair& pair) {
  const auto device = net->parameters().front().device();
  return (net->forward(pair.first.to(device)) - pair.second.to(device)).square().mean();
}

inline torch::optim::Adam fast_adam(Net& net) {
  return torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.05));
}

inline constexpr double kMostNorm = 0.3;

/// What one process gets, which has the batches of all ranks, with an update after every `each`
/// steps.
inline std::vector<torch::Tensor> trained_alone(c10::Device device, const Counts& counts,
                                                int each) {
  Net net(kWidths, 5);
  net->to(device);
  auto optimizer = fast_adam(net);
  const auto ranks = static_cast<int>(counts.size());
  for (int step = 0; step < *std::ranges::max_element(counts); ++step) {
    if (step % each == 0) optimizer.zero_grad();
    for (int rank = 0; rank < ranks; ++rank) {
      if (step >= counts[static_cast<std::size_t>(rank)]) continue;
      (loss_of_pair(net, pair_of(rank, step)) / ranks).backward();
    }
    if (step % each != each - 1) continue;
    torch::nn::utils::clip_grad_norm_(net->parameters(), kMostNorm);
    optimizer.step();
  }
  return values_of(net);
}

/// The same with a context; checks how many steps there were, and how many counted.
inline std::vector<torch::Tensor> trained_joined(train::Context& ctx, const Counts& counts,
                                                 int each) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(fast_adam(net));
  const auto pairs = pairs_of(ctx.rank(), counts);
  int step = 0;
  int counted = 0;
  for (const auto& pair : ctx.join(pairs)) {
    if (step % each == 0) optimizer.zero_grad();
    if (!ctx.repeats_batch()) ++counted;
    const bool is_update = step++ % each == each - 1;
    if (!is_update) {
      const auto guard = ctx.no_sync();
      loss_of_pair(net, pair).backward();
      continue;
    }
    loss_of_pair(net, pair).backward();
    ctx.clip_grad_norm(optimizer, kMostNorm);
    optimizer.step();
  }
  expect(step == *std::ranges::max_element(counts), "as many steps as the most batches");
  expect(counted == counts[static_cast<std::size_t>(ctx.rank())], "own batches count once each");
  expect(!ctx.repeats_batch(), "nothing is repeated after the loop");
  return whole_values(ctx, net);
}

/// With and without a context the training has the same values.
inline void expect_joined_as_alone(train::Context& ctx, const Counts& counts, int each) {
  expect_same(trained_joined(ctx, counts, each), trained_alone(ctx.device(), counts, each), 1e-9,
              "joined");
}

}  // namespace troupe::testing
