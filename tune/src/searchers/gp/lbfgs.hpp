#pragma once

#include <cstddef>
#include <functional>

#include <Eigen/Dense>

namespace troupe::tune {

/// f(x), with its gradient in the second argument. What is not finite counts as worse than any
/// other value.
using SmoothFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct LbfgsOptions {
  int iterations = 100;     ///< at most
  double gradient = 1e-4;   ///< done where no component of the projected gradient is above
  double decrease = 1e-10;  ///< done where a step lowers f by less, relative to max(1, |f|)
  std::size_t memory = 10;  ///< steps of which the curvature is remembered
};

struct LbfgsResult {
  Eigen::VectorXd x = {};
  double value = 0;
};

/// A local minimum of f in the box [low, high], near x: L-BFGS (Nocedal and Wright, "Numerical
/// Optimization", 2006, algorithm 7.4) on the coordinates that are not at a bound which f would
/// leave, with projected steps (Bertsekas, 1982) that fulfil Armijo's condition. Never worse than f
/// at x. Pure. Asserts that x is in the box.
LbfgsResult minimize(const SmoothFunction& f, const Eigen::VectorXd& x, const Eigen::VectorXd& low,
                     const Eigen::VectorXd& high, const LbfgsOptions& options = {});

}  // namespace troupe::tune
