#include "schedulers/pb2/time_varying.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "searchers/gp/fit.hpp"
#include "searchers/gp/lbfgs.hpp"

namespace troupe::tune {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kLeastVariance = 1e-12;
constexpr Eigen::Index kCandidates = 512;
constexpr std::size_t kClimbs = 8;

Matrix between_times(const Vector& rows, const Vector& columns) {
  return (rows.replicate(1, columns.size()) - columns.transpose().replicate(rows.size(), 1))
      .cwiseAbs();
}

Matrix joined(const Matrix& above, const Matrix& below) {
  if (below.rows() == 0) return above;
  Matrix both(above.rows() + below.rows(), above.cols());
  both << above, below;
  return both;
}

/// What L-BFGS moves.
Vector logarithms_of(const TimeVaryingParameters& parameters) {
  const auto d = parameters.gp.inverse_squared_lengths.size();
  Vector raw(d + 3);
  raw.head(d) = parameters.gp.inverse_squared_lengths.array().log();
  raw[d] = std::log(parameters.gp.scale);
  raw[d + 1] = std::log(
      std::max(parameters.gp.noise - kLeastImprovementNoise, 0.01 * kLeastImprovementNoise));
  raw[d + 2] = std::log(parameters.omega / (1 - parameters.omega));
  return raw;
}

TimeVaryingParameters parameters_of(const Vector& raw) {
  const auto d = raw.size() - 3;
  return {
      {raw.head(d).array().exp(), std::exp(raw[d]), kLeastImprovementNoise + std::exp(raw[d + 1])},
      1 / (1 + std::exp(-raw[d + 2]))};
}

}  // namespace

TimeVaryingParameters default_time_varying(Eigen::Index dimensions) {
  return {default_parameters(dimensions), 0.1};
}

Matrix time_varying_kernel(const TimedPoints& rows, const TimedPoints& columns,
                           const TimeVaryingParameters& parameters) {
  const std::vector<bool> none_is_category(static_cast<std::size_t>(rows.x.cols()));
  const Matrix distances =
      squared_distances(rows.x, columns.x, parameters.gp.inverse_squared_lengths, none_is_category);
  const double forgetting = std::log1p(-parameters.omega) / 2;
  return parameters.gp.scale *
         (-0.5 * distances + forgetting * between_times(rows.t, columns.t)).array().exp();
}

double log_posterior(const TimedPoints& points, const Vector& y,
                     const TimeVaryingParameters& parameters, Vector& gradient) {
  const auto n = points.x.rows(), d = points.x.cols();
  const Matrix signal = time_varying_kernel(points, points, parameters);
  Matrix covariance = signal;
  covariance.diagonal().array() += parameters.gp.noise;
  const Eigen::LLT<Matrix> factor(covariance);
  gradient = Vector::Zero(d + 3);
  if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();

  const Vector weights = factor.solve(y);
  const double log_determinant = 2 * factor.matrixLLT().diagonal().array().log().sum();
  const double likelihood = -0.5 * (y.dot(weights) + log_determinant +
                                    static_cast<double>(n) * std::log(2 * std::numbers::pi));

  // Half of (K^-1 y)(K^-1 y)^T - K^-1: what a change of the covariance is multiplied with.
  Matrix pull = -0.5 * factor.solve(Matrix::Identity(n, n));
  pull += 0.5 * weights * weights.transpose();
  gradient[d + 1] = pull.trace() * (parameters.gp.noise - kLeastImprovementNoise);
  pull = pull.cwiseProduct(signal);
  gradient[d] = pull.sum();
  for (Eigen::Index j = 0; j < d; ++j) {
    const auto along = squared_distances_along(j, points.x, points.x, false);
    gradient[j] = -0.5 * parameters.gp.inverse_squared_lengths[j] * pull.cwiseProduct(along).sum();
  }
  gradient[d + 2] =
      -0.5 * parameters.omega * pull.cwiseProduct(between_times(points.t, points.t)).sum();
  return likelihood + log_prior(parameters.gp, kLeastImprovementNoise, gradient);
}

TimeVaryingParameters fitted(const TimedPoints& points, const Vector& y,
                             const TimeVaryingParameters& start) {
  const SmoothFunction loss = [&](const Vector& raw, Vector& gradient) {
    const double value = log_posterior(points, y, parameters_of(raw), gradient);
    gradient = -gradient;
    return -value;
  };
  const auto size = points.x.cols() + 3;
  // Lengths of e^-3.5 to e^3.5 boxes, omega of 1e-4 to 0.999: beyond, nothing changes.
  Vector low = Vector::Constant(size, -7), high = Vector::Constant(size, 7);
  low[size - 2] = std::log(0.01 * kLeastImprovementNoise);
  high[size - 2] = 3;
  low[size - 1] = -9;
  const Vector raw = logarithms_of(start).cwiseMax(low).cwiseMin(high);
  return parameters_of(minimize(loss, raw, low, high, {.iterations = 60, .gradient = 1e-2}).x);
}

TimeVaryingPosterior::TimeVaryingPosterior(const TimedPoints& observed, const Vector& y,
                                           const TimedPoints& awaited,
                                           TimeVaryingParameters parameters)
    : points_{joined(observed.x, awaited.x), joined(observed.t, awaited.t)},
      parameters_{std::move(parameters)} {
  const auto n = y.size();
  assert(n > 0);
  Matrix covariance = time_varying_kernel(points_, points_, parameters_);
  covariance.diagonal().array() += parameters_.gp.noise;
  factor_ = cholesky(std::move(covariance));
  const auto lower = factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>();
  weights_ = lower.solve(y);
  lower.transpose().solveInPlace(weights_);
}

TimeVaryingPosterior::Moments TimeVaryingPosterior::at(const Vector& x, double t) const {
  const TimedPoints point{x.transpose(), Vector::Constant(1, t)};
  const Vector toward = time_varying_kernel(points_, point, parameters_);
  const Vector solved = factor_.triangularView<Eigen::Lower>().solve(toward);
  return {toward.head(weights_.size()).dot(weights_),
          std::max(0.0, parameters_.gp.scale - solved.squaredNorm())};
}

double TimeVaryingPosterior::upper_bound(const Vector& x, double t, double kappa,
                                         Vector& gradient) const {
  const TimedPoints point{x.transpose(), Vector::Constant(1, t)};
  const Vector toward = time_varying_kernel(points_, point, parameters_);
  Vector solved = factor_.triangularView<Eigen::Lower>().solve(toward);
  const double variance = std::max(0.0, parameters_.gp.scale - solved.squaredNorm());
  const double deviation = std::sqrt(variance + kLeastVariance);
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(solved);
  const auto n = weights_.size();
  gradient.resize(x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    const Vector changes = parameters_.gp.inverse_squared_lengths[j] *
                           (points_.x.col(j).array() - x[j]) * toward.array();
    gradient[j] = changes.head(n).dot(weights_) - kappa * changes.dot(solved) / deviation;
  }
  return toward.head(n).dot(weights_) + kappa * deviation;
}

Vector highest_upper_bound(const TimeVaryingPosterior& posterior, double t, double kappa,
                           const Matrix& near, Random& random) {
  const auto d = near.cols();
  Matrix points(kCandidates, d);
  for (Eigen::Index i = 0; i < kCandidates; ++i)
    for (Eigen::Index j = 0; j < d; ++j) points(i, j) = random.unit();
  points = joined(points, near);
  const auto lowered = [&](const Vector& x, Vector& gradient) {
    const double bound = posterior.upper_bound(x, t, kappa, gradient);
    gradient = -gradient;
    return -bound;
  };
  std::vector<std::pair<double, Eigen::Index>> order;
  Vector gradient;
  for (Eigen::Index i = 0; i < points.rows(); ++i)
    order.emplace_back(lowered(points.row(i).transpose(), gradient), i);
  std::ranges::sort(order);
  order.resize(std::min(order.size(), kClimbs));
  LbfgsResult best{.value = std::numeric_limits<double>::infinity()};
  for (const auto& [value, row] : order) {
    auto climbed = minimize(lowered, points.row(row).transpose(), Vector::Zero(d), Vector::Ones(d),
                            {.iterations = 60, .gradient = 1e-5});
    if (climbed.value < best.value) best = std::move(climbed);
  }
  return best.x;
}

}  // namespace troupe::tune
