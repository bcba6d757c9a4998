#pragma once

#include "searchers/gp/fit.hpp"

namespace troupe::tune {

/// What a Gaussian process knows after its observations, and with trials whose results are awaited.
///
/// An awaited result is taken to be what the process expects of it (the kriging believer of
/// Ginsbourger, Le Riche and Carraro, 2010): that leaves the mean as it is, and takes away the
/// variance that the result will take away whatever it is. A value; pure. Cost: O(n^3) to make.
class GpPosterior {
 public:
  struct Moments {
    double mean = 0;
    double variance = 0;  ///< of the function, without the noise; at least 0
  };
  struct Gradients {
    Eigen::VectorXd mean;
    Eigen::VectorXd variance;
  };

  /// `awaited` has a point a row, and may have none.
  GpPosterior(GpData data, const Eigen::MatrixXd& awaited, GpParameters parameters);

  /// Of many points, one a row. Cost: O(n^2) a point.
  std::vector<Moments> at(const Eigen::MatrixXd& points) const;
  /// Of one, with the gradients by its coordinates, 0 along a category. Cost: O(n^2).
  Moments at(const Eigen::VectorXd& point, Gradients& gradients) const;
  /// The highest value observed, or expected of what is awaited.
  double best() const { return best_; }
  const GpParameters& parameters() const { return parameters_; }

 private:
  GpParameters parameters_;
  std::vector<bool> is_category_;
  Eigen::MatrixXd x_;        // observed, then awaited
  Eigen::MatrixXd factor_;   // lower Cholesky factor of their covariance
  Eigen::VectorXd weights_;  // of the observed ones
  double best_ = 0;
};

}  // namespace troupe::tune
