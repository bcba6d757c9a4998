#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::tune {

/// Random numbers that are the same on every machine and with every standard library, which the
/// distributions of <random> are not: SplitMix64 (Steele, Lea and Flood, 2014). A value; not for
/// secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed} {}
  /// A stream of its own for (seed, index, name): what one name draws does not depend on the other
  /// names.
  Random(std::uint64_t seed, std::uint64_t index, std::string_view name);

  std::uint64_t next();
  /// In [0, 1), 53 bits.
  double unit();
  /// In [0, bound), each equally often. Asserts bound > 0. Lemire's method (2019).
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

}  // namespace troupe::tune
