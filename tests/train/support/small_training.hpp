#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/train/context.hpp>

#include "guard.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"

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

/// The loss over the part of the rows that is that of this rank of the context.
inline torch::Tensor rank_loss(train::Context& ctx, Net& net, std::uint64_t step) {
  return loss_of(net, ctx.rank(), ctx.world_size(), step);
}

/// A net that the ranks of a context train, each on its part of the rows, beside one that each
/// process trains alone on all rows: steps of both give the same values. `make`: an optimizer of a
/// net's parameters.
template <class Make>
struct BesideOne {
  using Optimizer = std::invoke_result_t<Make, Net&>;

  BesideOne(train::Context& context, const std::vector<std::int64_t>& widths, Make make)
      : ctx(context),
        net(ctx.prepare(Net(widths, 5))),
        optimizer(ctx.prepare(make(net))),
        alone(widths, 5),
        optimizer_alone(make(alone)) {
    alone->to(ctx.device());
  }

  void backward(std::uint64_t number, bool set_to_none = true) {
    optimizer.zero_grad(set_to_none);
    optimizer_alone.zero_grad(set_to_none);
    loss_of(net, ctx.rank(), ctx.world_size(), number).backward();
    loss_of(alone, 0, 1, number).backward();
  }
  void update() {
    optimizer.step();
    optimizer_alone.step();
  }
  void step(std::uint64_t number) {
    backward(number);
    update();
  }
  /// A collective with ZeRO.
  void expect_same_values(double tolerance, const std::string& what) {
    expect_same(whole_values(ctx, net), values_of(alone), tolerance, what);
  }

  train::Context& ctx;
  Net net;
  train::PreparedOptimizer<Optimizer> optimizer;
  Net alone;
  Optimizer optimizer_alone;
};

}  // namespace troupe::testing
