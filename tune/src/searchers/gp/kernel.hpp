#pragma once

#include <vector>

#include <Eigen/Dense>

namespace troupe::tune {

/// Of the Gaussian process with mean 0: covariance scale * matern(d2) between two points, where d2
/// is the sum over the coordinates of inverse_squared_length * (distance along it)^2, and the
/// variance `noise` more of each observation.
struct GpParameters {
  Eigen::VectorXd inverse_squared_lengths;
  double scale = 1;
  double noise = 1;
};

/// Matern's kernel with nu = 5/2, of squared distances: (1 + r + r^2/3) e^-r with r = sqrt(5 d2)
/// (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, equation 4.17).
Eigen::MatrixXd matern(const Eigen::MatrixXd& squared_distances);
/// Its derivative by the squared distance: -5/6 (1 + r) e^-r.
Eigen::MatrixXd matern_slope(const Eigen::MatrixXd& squared_distances);

/// Between two sets of points, one a row: (distance along coordinate j)^2. That of a category is 0
/// or 1 (Hamming).
Eigen::MatrixXd squared_distances_along(Eigen::Index j, const Eigen::MatrixXd& rows,
                                        const Eigen::MatrixXd& columns, bool is_category);

/// Their sum over the coordinates, each multiplied by its inverse squared length.
Eigen::MatrixXd squared_distances(const Eigen::MatrixXd& rows, const Eigen::MatrixXd& columns,
                                  const Eigen::VectorXd& inverse_squared_lengths,
                                  const std::vector<bool>& is_category);

/// The lower Cholesky factor of a covariance with noise on its diagonal; with more of it where
/// rounding made the covariance indefinite.
Eigen::MatrixXd cholesky(Eigen::MatrixXd covariance);

}  // namespace troupe::tune
