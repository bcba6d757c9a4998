#pragma once

#include <functional>
#include <vector>

#include <troupe/tune/random.hpp>

#include "searchers/gp/posterior.hpp"

namespace troupe::tune {

/// The logarithm of the improvement over `best` that is expected of a normal value, and its
/// derivatives: exact to about 1e-10 also where the improvement itself is too small for a double
/// (Ament, Daulton, Eriksson, Balandat and Bakshy, 2023, arXiv 2310.20708, equation 9).
struct LogImprovement {
  double value = 0;
  double by_mean = 0;
  double by_deviation = 0;
};
/// Asserts deviation > 0.
LogImprovement log_improvement(double mean, double deviation, double best);

/// What a coordinate of a point may be.
struct GpCoordinate {
  bool is_category = false;
  /// All of them, where they are few enough to be tried one by one; else the coordinate is moved
  /// like a real one.
  std::vector<double> values = {};
  /// The nearest coordinate that stands for a value; empty: all do.
  std::function<double(double)> settled = {};
};

struct MaximizeOptions {
  std::size_t candidates = 2048;  ///< of a Sobol sequence
  std::size_t climbs = 10;        ///< local searches
};

/// A point with the highest expected improvement that is found. The candidates are a Sobol sequence
/// with a random shift and points around `incumbents`, one a row, the best first; from the best of
/// them, from the best incumbent, and from others drawn with probabilities proportional to their
/// improvement, L-BFGS climbs along the real coordinates while the others are tried value by value.
/// Cost: O(n^2) for each candidate and each step.
Eigen::VectorXd maximized_improvement(const GpPosterior& posterior,
                                      const std::vector<GpCoordinate>& coordinates,
                                      const Eigen::MatrixXd& incumbents, Random& random,
                                      const MaximizeOptions& options = {});

}  // namespace troupe::tune
