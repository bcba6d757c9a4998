#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <boost/random/sobol.hpp>

namespace troupe::tune {

/// Points of [0, 1)^d by their number, the same on every machine.

/// In the order of the Gray code (Antonov and Saleev, 1979), beginning with point 0, which is the
/// origin unless it is scrambled.
class SobolSequence {
 public:
  static constexpr std::size_t kMostDimensions = 3667;  // of the table of direction numbers

  /// A seed scrambles it. Asserts dimensions <= kMostDimensions.
  SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed);
  std::vector<double> point(std::uint64_t index);

 private:
  using Engine = boost::random::sobol_engine<std::uint64_t, 64>;

  std::size_t dimensions_;
  std::optional<Engine> engine_;     // none without a dimension
  std::vector<std::uint64_t> keys_;  // of each dimension's scrambling; empty: none
};

class HaltonSequence {
 public:
  static constexpr std::size_t kMostDimensions = 1000;

  /// A seed scrambles it. Asserts dimensions <= kMostDimensions.
  HaltonSequence(std::size_t dimensions, std::optional<std::uint64_t> seed);
  std::vector<double> point(std::uint64_t index) const;

 private:
  std::vector<std::uint32_t> bases_;
  std::vector<std::uint64_t> keys_;  // of each dimension's scrambling; empty: none
};

}  // namespace troupe::tune
