#pragma once

#include <vector>

#include <troupe/tune/random.hpp>

#include "searchers/axis.hpp"

namespace troupe::tune {

/// A kernel density estimate of points with a coordinate for each axis: the product of a Gaussian
/// kernel for each number and of Aitchison and Aitken's (1976) for each category, one for each
/// point. Pure.
class KernelDensity {
 public:
  /// Asserts that there is a point. `axes` outlive it.
  KernelDensity(const Axes& axes, std::vector<std::vector<double>> points);

  double log_density(const std::vector<double>& x) const;
  /// A point near one of its own, with bandwidths `widening` times as large along numbers.
  std::vector<double> draw(Random& random, double widening) const;
  /// 1.06 * deviation * n^(-1/(4+d)), at least 0.001 and half of an integer. Of a category: the
  /// probability to be another.
  const std::vector<double>& bandwidths() const { return bandwidths_; }

 private:
  double bandwidth(std::size_t axis) const;

  const Axes& axes_;
  std::vector<std::vector<double>> points_;
  std::vector<double> bandwidths_;
};

}  // namespace troupe::tune
