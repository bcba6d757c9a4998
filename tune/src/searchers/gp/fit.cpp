#include "searchers/gp/fit.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "searchers/gp/lbfgs.hpp"

namespace troupe::tune {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// What L-BFGS moves: logarithms, the noise's of its part above the least.
Vector packed(const GpParameters& parameters) {
  const auto d = parameters.inverse_squared_lengths.size();
  Vector raw(d + 2);
  raw.head(d) = parameters.inverse_squared_lengths.array().log();
  raw[d] = std::log(parameters.scale);
  raw[d + 1] = std::log(std::max(parameters.noise - kLeastNoise, 0.01 * kLeastNoise));
  return raw;
}

GpParameters unpacked(const Vector& raw) {
  const auto d = raw.size() - 2;
  return {raw.head(d).array().exp(), std::exp(raw[d]), kLeastNoise + std::exp(raw[d + 1])};
}

}  // namespace

double log_prior(const GpParameters& parameters, double least_noise, Vector& gradient) {
  const auto lengths = parameters.inverse_squared_lengths.array();
  const auto d = lengths.size();
  gradient.head(d).array() += 0.1 / lengths - 0.1 * lengths;
  gradient[d] += 1 - parameters.scale;
  gradient[d + 1] += (0.1 / parameters.noise - 30) * (parameters.noise - least_noise);
  return -(0.1 / lengths + 0.1 * lengths).sum() + std::log(parameters.scale) - parameters.scale +
         0.1 * std::log(parameters.noise) - 30 * parameters.noise;
}

GpParameters default_parameters(Eigen::Index dimensions) {
  return {Vector::Ones(dimensions), 1, 1};
}

double log_posterior(const GpData& data, const GpParameters& parameters, Vector& gradient) {
  const auto n = data.x.rows(), d = data.x.cols();
  const Matrix distances =
      squared_distances(data.x, data.x, parameters.inverse_squared_lengths, data.is_category);
  const Matrix signal = parameters.scale * matern(distances);
  Matrix covariance = signal;
  covariance.diagonal().array() += parameters.noise;
  const Eigen::LLT<Matrix> factor(covariance);
  gradient = Vector::Zero(d + 2);
  if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();

  const Vector weights = factor.solve(data.y);
  const double log_determinant = 2 * factor.matrixLLT().diagonal().array().log().sum();
  const double likelihood = -0.5 * (data.y.dot(weights) + log_determinant +
                                    static_cast<double>(n) * std::log(2 * std::numbers::pi));

  // Half of (K^-1 y)(K^-1 y)^T - K^-1: what a change of the covariance is multiplied with.
  Matrix pull = -0.5 * factor.solve(Matrix::Identity(n, n));
  pull += 0.5 * weights * weights.transpose();
  gradient[d] = pull.cwiseProduct(signal).sum();
  gradient[d + 1] = pull.trace() * (parameters.noise - kLeastNoise);
  pull = parameters.scale * pull.cwiseProduct(matern_slope(distances));
  for (Eigen::Index j = 0; j < d; ++j) {
    const auto along =
        squared_distances_along(j, data.x, data.x, data.is_category[static_cast<std::size_t>(j)]);
    gradient[j] = parameters.inverse_squared_lengths[j] * pull.cwiseProduct(along).sum();
  }
  return likelihood + log_prior(parameters, kLeastNoise, gradient);
}

GpParameters fitted(const GpData& data, const std::vector<GpParameters>& starts) {
  assert(!starts.empty());
  const SmoothFunction loss = [&](const Vector& raw, Vector& gradient) {
    const double value = log_posterior(data, unpacked(raw), gradient);
    gradient = -gradient;
    return -value;
  };
  const auto size = data.x.cols() + 2;
  // Lengths of e^-7 to e^7 boxes, a noise up to 20: beyond, nothing changes.
  Vector low = Vector::Constant(size, -14), high = Vector::Constant(size, 14);
  low[size - 1] = std::log(0.01 * kLeastNoise);
  high[size - 1] = 3;
  LbfgsResult best{.value = std::numeric_limits<double>::infinity()};
  for (const auto& start : starts) {
    const Vector raw = packed(start).cwiseMax(low).cwiseMin(high);
    auto next = minimize(loss, raw, low, high, {.iterations = 60, .gradient = 1e-2});
    if (best.x.size() == 0 || next.value < best.value) best = std::move(next);
  }
  return unpacked(best.x);
}

}  // namespace troupe::tune
