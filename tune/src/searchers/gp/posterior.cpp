#include "searchers/gp/posterior.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::tune {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

}  // namespace

GpPosterior::GpPosterior(GpData data, const Matrix& awaited, GpParameters parameters)
    : parameters_{std::move(parameters)}, is_category_{std::move(data.is_category)} {
  const auto n = data.x.rows();
  assert(n > 0);
  x_.resize(n + awaited.rows(), data.x.cols());
  x_.topRows(n) = data.x;
  if (awaited.rows() > 0) x_.bottomRows(awaited.rows()) = awaited;
  Matrix covariance =
      parameters_.scale *
      matern(squared_distances(x_, x_, parameters_.inverse_squared_lengths, is_category_));
  const Matrix toward_awaited = covariance.bottomLeftCorner(awaited.rows(), n);
  covariance.diagonal().array() += parameters_.noise;
  factor_ = cholesky(std::move(covariance));
  const auto observed = factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>();
  weights_ = observed.solve(data.y);
  observed.transpose().solveInPlace(weights_);
  best_ = data.y.maxCoeff();
  if (awaited.rows() > 0) best_ = std::max(best_, (toward_awaited * weights_).maxCoeff());
}

std::vector<GpPosterior::Moments> GpPosterior::at(const Matrix& points) const {
  // Some at a time: the solve stays in the cache.
  constexpr Eigen::Index kAtATime = 256;
  std::vector<Moments> all;
  for (Eigen::Index first = 0; first < points.rows(); first += kAtATime) {
    const Matrix some = points.middleRows(first, std::min(kAtATime, points.rows() - first));
    Matrix toward =
        parameters_.scale *
        matern(squared_distances(x_, some, parameters_.inverse_squared_lengths, is_category_));
    const Vector means = toward.topRows(weights_.size()).transpose() * weights_;
    factor_.triangularView<Eigen::Lower>().solveInPlace(toward);
    for (Eigen::Index i = 0; i < some.rows(); ++i)
      all.push_back({means[i], std::max(0.0, parameters_.scale - toward.col(i).squaredNorm())});
  }
  return all;
}

GpPosterior::Moments GpPosterior::at(const Vector& point, Gradients& gradients) const {
  const Matrix row = point.transpose();
  const Matrix distances =
      squared_distances(x_, row, parameters_.inverse_squared_lengths, is_category_);
  const Vector toward = parameters_.scale * matern(distances);
  const Vector slopes = parameters_.scale * matern_slope(distances);
  Vector solved = factor_.triangularView<Eigen::Lower>().solve(toward);
  const auto n = weights_.size();
  const Moments moments{toward.head(n).dot(weights_),
                        std::max(0.0, parameters_.scale - solved.squaredNorm())};
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(solved);
  const auto d = point.size();
  gradients = {Vector::Zero(d), Vector::Zero(d)};
  for (Eigen::Index j = 0; j < d; ++j) {
    if (is_category_[static_cast<std::size_t>(j)]) continue;
    const Vector changes = 2 * parameters_.inverse_squared_lengths[j] * slopes.array() *
                           (point[j] - x_.col(j).array());
    gradients.mean[j] = changes.head(n).dot(weights_);
    gradients.variance[j] = -2 * changes.dot(solved);
  }
  return moments;
}

}  // namespace troupe::tune
