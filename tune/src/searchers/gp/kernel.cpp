#include "searchers/gp/kernel.hpp"

#include <cmath>

namespace troupe::tune {

Eigen::MatrixXd matern(const Eigen::MatrixXd& squared_distances) {
  const Eigen::ArrayXXd r = (5 * squared_distances.array()).sqrt();
  return (1 + r + r.square() / 3) * (-r).exp();
}

Eigen::MatrixXd matern_slope(const Eigen::MatrixXd& squared_distances) {
  const Eigen::ArrayXXd r = (5 * squared_distances.array()).sqrt();
  return -5.0 / 6.0 * (1 + r) * (-r).exp();
}

Eigen::MatrixXd squared_distances_along(Eigen::Index j, const Eigen::MatrixXd& rows,
                                        const Eigen::MatrixXd& columns, bool is_category) {
  Eigen::MatrixXd distances(rows.rows(), columns.rows());
  for (Eigen::Index at = 0; at < columns.rows(); ++at) {
    const auto difference = rows.col(j).array() - columns(at, j);
    if (is_category)
      distances.col(at) = (difference != 0).cast<double>();
    else
      distances.col(at) = difference.square();
  }
  return distances;
}

Eigen::MatrixXd squared_distances(const Eigen::MatrixXd& rows, const Eigen::MatrixXd& columns,
                                  const Eigen::VectorXd& inverse_squared_lengths,
                                  const std::vector<bool>& is_category) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(rows.rows(), columns.rows());
  for (Eigen::Index j = 0; j < rows.cols(); ++j)
    sum += inverse_squared_lengths[j] *
           squared_distances_along(j, rows, columns, is_category[static_cast<std::size_t>(j)]);
  return sum;
}

Eigen::MatrixXd cholesky(Eigen::MatrixXd covariance) {
  for (double more = 1e-10;; more *= 10) {
    const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
    if (factor.info() == Eigen::Success) return factor.matrixL();
    covariance.diagonal().array() += more;
  }
}

}  // namespace troupe::tune
