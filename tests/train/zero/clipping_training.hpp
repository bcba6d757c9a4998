#pragma once

#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <torch/nn/utils/clip_grad.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

/// A training whose gradients are clipped, on any device. To be used in forked ranks only.
namespace troupe::testing {

/// Ranks that clip by the norm of all gradients train as one process that has all rows and clips
/// by LibTorch's function.
inline void expect_clipped_as_alone(train::Context& ctx) {
  constexpr double kTolerance = 1e-9;  // of float64, whose sums have other orders
  BesideOne both(ctx, kWidths, [](Net& net) { return sgd(net); });
  for (std::uint64_t i = 0; i < 4; ++i) {
    both.backward(i);
    const double most = i == 0 ? 1e6 : 1e-3;  // the first step's gradients stay as they are
    const double norm = ctx.clip_grad_norm(both.optimizer, most);
    const double expected = torch::nn::utils::clip_grad_norm_(both.alone->parameters(), most);
    expect(std::abs(norm - expected) <= kTolerance * expected,
           [&] { return fmt::format("a norm of {}, expected {}", norm, expected); });
    both.update();
  }
  both.expect_same_values(kTolerance, "clipped");
}

}  // namespace troupe::testing
