#pragma once

#include <cstdint>
#include <vector>

#include <troupe/train/context.hpp>

#include "support/net.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

/// A training of more buckets than a rank keeps, on any device. To be used in forked ranks only,
/// but for the options.
namespace troupe::testing {

inline train::ContextOptions prefetch_options(bool prefetch) {
  auto options = options_with(3);
  options.zero.prefetch = prefetch;
  return options;
}

/// Of layers whose weights are in a bucket each.
inline const std::vector<std::int64_t> kDeepWidths{6, 20, 20, 20, 20, 20, 20, 4};

/// Ranks train as one process that has all rows.
inline void expect_deep_net_as_alone(train::Context& ctx) {
  BesideOne both(ctx, kDeepWidths, [](Net& net) { return adam(net); });
  for (std::uint64_t i = 0; i < 6; ++i) both.step(i);
  both.expect_same_values(1e-9, "trained by parts");
}

}  // namespace troupe::testing
