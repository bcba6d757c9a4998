#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/trainable.hpp>

namespace troupe::tune {

enum class Mode : std::uint8_t { Min, Max };
inline constexpr auto Min = Mode::Min;
inline constexpr auto Max = Mode::Max;

/// A Mode among a program's options, where the compiler says of text what to write.
class ModeOption {
 public:
  constexpr ModeOption(Mode mode) : mode_{mode} {}
  template <std::convertible_to<std::string_view> Text>
  constexpr ModeOption(const Text&) : mode_{Mode::Min} {
    static_assert(!std::convertible_to<Text, std::string_view>,
                  "troupe: .mode is tune::Min or tune::Max, and no text");
  }
  constexpr operator Mode() const { return mode_; }

 private:
  Mode mode_;
};

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

enum class Bound : std::uint8_t { AtMost, AtLeast };
inline constexpr auto AtMost = Bound::AtMost;
inline constexpr auto AtLeast = Bound::AtLeast;

/// What a trial of a run with several objectives has to keep to: one reported metric is at most, or
/// at least, its limit.
struct Constraint {
  std::string metric = {};
  Bound bound = Bound::AtMost;
  double limit = 0;

  /// How far `value` is beyond the limit, as a part of the limit (of 1 where that is 0): 0 where it is
  /// kept to, infinite where the value is nan.
  double violation_of(double value) const;
  friend bool operator==(const Constraint&, const Constraint&) = default;
};

}  // namespace troupe::tune
