#pragma once

#include <cstdint>
#include <vector>

#include <troupe/tune/space.hpp>

namespace troupe::tune {

/// How population-based training changes a configuration (pbt.hpp, rule 4).
struct Explore {
  const SearchSpace& mutate;
  double resample = 0.25;
  const std::vector<double>& factors;
};

/// `value` of a field, changed by the kind of its domain, or drawn anew.
Scalar explored(const Scalar& value, const Domain& domain, const Explore& how, Random& random);

/// The donor's configuration with the fields of `mutate` changed. Each field draws from a stream of
/// its own for (seed, draw, its name).
Configuration explored(Configuration donor, const Explore& how, std::uint64_t seed,
                       std::uint64_t draw);

}  // namespace troupe::tune
