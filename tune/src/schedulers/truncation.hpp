#pragma once

#include <cmath>
#include <cstddef>

namespace troupe::tune {

/// How many of n members are in each of the two outer quantiles of truncation selection: ceil(n *
/// quantile), floor(n / 2) if that is more than n / 2, and none of one member.
inline std::size_t truncation_size(std::size_t members, double quantile) {
  if (members <= 1) return 0;
  // 10 * 0.1 must be 1 and not the next above: a product that is a whole number but for its
  // rounding is that number.
  const auto product = static_cast<double>(members) * quantile;
  const auto size = static_cast<std::size_t>(std::ceil(product - 1e-9));
  return 2 * size > members ? members / 2 : size;
}

}  // namespace troupe::tune
