#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <troupe/train/context.hpp>

#include "guard.hpp"
#include "support/net.hpp"

/// A training that ranks on CPUs and ranks on GPUs are tried with. To be used in forked ranks only.
namespace troupe::testing {

inline const std::vector<std::int64_t> kWidths{6, 40, 30, 4};
inline constexpr std::int64_t kRows = 24;  // divisible by every number of ranks

/// So that the gradients of a net of kWidths take several buckets.
inline train::ContextOptions small_buckets(bool find_unused = false) {
  train::ContextOptions options;
  options.timeout = test::kGuard;
  options.data_parallel = {
      .first_bucket_bytes = 1000, .bucket_bytes = 4000, .find_unused_parameters = find_unused};
  return options;
}

/// A net of float32, the same on every rank.
inline Net float_net(std::vector<std::int64_t> widths = kWidths) {
  Net net(std::move(widths), 5);
  net->to(torch::kFloat32);
  return net;
}

/// The loss over a rank's part of the rows, on the device that the net is on.
inline torch::Tensor loss_of(Net& net, int rank, int ranks, std::uint64_t step = 0) {
  const auto device = net->parameters().front().device();
  const auto x = part(rows(kRows, kWidths.front(), 10 + step), rank, ranks).to(device);
  const auto y = part(rows(kRows, kWidths.back(), 20 + step), rank, ranks).to(device);
  return (net->forward(x) - y).square().mean();  // mse_loss() warns on other_device()
}

}  // namespace troupe::testing
