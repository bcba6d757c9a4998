#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/trainable.hpp>

namespace troupe::tune {

enum class Mode : std::uint8_t { Min, Max };
inline constexpr auto Min = Mode::Min;
inline constexpr auto Max = Mode::Max;

/// What a run looks for: the lowest or the highest value of one reported metric.
struct Objective {
  std::string metric = {};
  Mode mode = Mode::Min;

  /// The value in `metrics`, if it is there.
  std::optional<double> value_in(const Metrics& metrics) const;
  /// Higher is better; what is not finite is the worst there is, minus infinity.
  double score(double value) const;
  /// True if `value` is strictly better than `than`.
  bool better(double value, double than) const { return score(value) > score(than); }
  friend bool operator==(const Objective&, const Objective&) = default;
};

}  // namespace troupe::tune
