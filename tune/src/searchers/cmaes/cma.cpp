#include "searchers/cmaes/cma.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "searchers/cmaes/margin.hpp"
#include "searchers/normal.hpp"

namespace troupe::tune {
namespace {

constexpr int kMostDraws = 100;
constexpr double kSmallestSpread = 1e-12;  // of the first one
constexpr double kWorstCondition = 1e14;

std::size_t default_population(std::size_t d) {
  return 4 + static_cast<std::size_t>(std::floor(3 * std::log(static_cast<double>(d))));
}

/// (sum of the weights)^2 / sum of their squares.
double effective(const Eigen::VectorXd& weights) {
  return weights.sum() * weights.sum() / weights.squaredNorm();
}

/// The matrix itself, or the nearest one with eigenvalues that are positive where rounding took that
/// from it.
Eigen::MatrixXd positive_definite(const Eigen::MatrixXd& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  const auto& values = solver.eigenvalues();
  const double least = std::max(values.maxCoeff() * 1e-16, 1e-300);
  if (values.minCoeff() >= least) return symmetric;
  const auto& basis = solver.eigenvectors();
  return basis * values.cwiseMax(least).asDiagonal() * basis.transpose();
}

bool is_inside(const Eigen::VectorXd& x) { return x.minCoeff() >= 0 && x.maxCoeff() <= 1; }

}  // namespace

CmaConstants::CmaConstants(std::size_t dimensions, std::size_t population)
    : lambda{population ? population : default_population(dimensions)}, mu{lambda / 2} {
  assert(dimensions >= 1 && lambda >= 2);
  const auto d = static_cast<double>(dimensions);
  const auto size = static_cast<Eigen::Index>(lambda);
  const auto positive = static_cast<Eigen::Index>(mu);
  weights.resize(size);
  for (Eigen::Index i = 0; i < size; ++i)
    weights[i] = std::log((static_cast<double>(lambda) + 1) / 2) - std::log(i + 1.0);
  mu_eff = effective(weights.head(positive));
  const double mu_eff_minus = effective(weights.tail(size - positive));

  c_sigma = (mu_eff + 2) / (d + mu_eff + 5);
  d_sigma = 1 + 2 * std::max(0.0, std::sqrt((mu_eff - 1) / (d + 1)) - 1) + c_sigma;
  c_c = (4 + mu_eff / d) / (d + 4 + 2 * mu_eff / d);
  c_1 = 2 / ((d + 1.3) * (d + 1.3) + mu_eff);
  c_mu = std::min(1 - c_1, 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((d + 2) * (d + 2) + mu_eff));
  chi = std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));

  const double negative_sum = std::min(
      {1 + c_1 / c_mu, 1 + 2 * mu_eff_minus / (mu_eff + 2), (1 - c_1 - c_mu) / (d * c_mu)});
  const double above = weights.cwiseMax(0).sum(), below = -weights.cwiseMin(0).sum();
  for (auto& weight : weights) weight *= weight >= 0 ? 1 / above : negative_sum / below;
}

Cma::Cma(const Eigen::VectorXd& mean, double sigma, std::size_t population,
         std::vector<CellOf> cells)
    : constants_{static_cast<std::size_t>(mean.size()), population},
      first_sigma_{sigma},
      cells_{std::move(cells)} {
  const auto d = mean.size();
  assert(is_inside(mean) && sigma > 0 && std::ssize(cells_) == d);
  state_ = {.mean = mean,
            .sigma = sigma,
            .covariance = Eigen::MatrixXd::Identity(d, d),
            .path_sigma = Eigen::VectorXd::Zero(d),
            .path_c = Eigen::VectorXd::Zero(d),
            .spread = Eigen::VectorXd::Ones(d)};
  keep_margin(state_, cells_, constants_.lambda);
  decompose();
}

void Cma::set_state(CmaState state) {
  assert(state.mean.size() == state_.mean.size());
  state_ = std::move(state);
  decompose();
}

/// From the covariance alone, so that a state that was taken up draws the same points.
void Cma::decompose() {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(state_.covariance);
  basis_ = solver.eigenvectors();
  const double largest = std::max(solver.eigenvalues().maxCoeff(), 1e-300);
  scales_ = solver.eigenvalues().cwiseMax(largest * 1e-16).cwiseSqrt();
}

Eigen::VectorXd Cma::draw(Random& random) const {
  Eigen::VectorXd x, z(state_.mean.size());
  for (int draws = 0; draws < kMostDraws; ++draws) {
    for (auto& deviate : z) deviate = draw_normal(random);
    const Eigen::VectorXd y = basis_ * scales_.cwiseProduct(z);
    x = state_.mean + state_.sigma * state_.spread.cwiseProduct(y);
    if (is_inside(x)) return x;
  }
  return x.cwiseMax(0).cwiseMin(1);
}

/// In the metric of the covariance.
double Cma::length(const Eigen::VectorXd& y) const {
  return (basis_.transpose() * y).cwiseQuotient(scales_).norm();
}

Eigen::VectorXd Cma::step_of(const CmaPoint& point) const {
  Eigen::VectorXd y = (point.x - state_.mean).cwiseQuotient(state_.spread) / state_.sigma;
  if (point.is_own) return y;
  const auto d = static_cast<double>(y.size());
  const double longest = std::sqrt(d) + 2 * d / (d + 2), own = length(y);
  return own > longest ? Eigen::VectorXd(y * (longest / own)) : y;
}

/// Changes sigma and its path; false while that path is so long that the covariance's must wait.
bool Cma::move_sigma(const Eigen::VectorXd& mean_step) {
  const auto& k = constants_;
  const auto d = static_cast<double>(mean_step.size());
  const Eigen::VectorXd whitened = basis_ * (basis_.transpose() * mean_step).cwiseQuotient(scales_);
  state_.path_sigma = (1 - k.c_sigma) * state_.path_sigma +
                      std::sqrt(k.c_sigma * (2 - k.c_sigma) * k.mu_eff) * whitened;
  const double path = state_.path_sigma.norm();
  state_.sigma *= std::exp(k.c_sigma / k.d_sigma * (path / k.chi - 1));
  // Neither a flat function nor a search that goes on where it has converged leads out of what a
  // double holds.
  state_.sigma = std::clamp(state_.sigma, 1e-30, 2.0);
  const double settled =
      std::sqrt(1 - std::pow(1 - k.c_sigma, 2 * (static_cast<double>(state_.generation) + 1)));
  return path / settled < (1.4 + 2 / (d + 1)) * k.chi;
}

void Cma::update(std::span<const CmaPoint> best_first) {
  const auto& k = constants_;
  assert(best_first.size() == k.lambda);
  const auto d = state_.mean.size();
  Eigen::MatrixXd steps(d, std::ssize(best_first));
  for (Eigen::Index i = 0; i < steps.cols(); ++i)
    steps.col(i) = step_of(best_first[static_cast<std::size_t>(i)]);
  const auto mu = static_cast<Eigen::Index>(k.mu);
  const Eigen::VectorXd mean_step = steps.leftCols(mu) * k.weights.head(mu);

  state_.mean += state_.sigma * state_.spread.cwiseProduct(mean_step);
  state_.mean = state_.mean.cwiseMax(0).cwiseMin(1);
  const double follows = move_sigma(mean_step) ? 1 : 0;
  state_.path_c =
      (1 - k.c_c) * state_.path_c + follows * std::sqrt(k.c_c * (2 - k.c_c) * k.mu_eff) * mean_step;

  Eigen::VectorXd weights = k.weights;
  for (Eigen::Index i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0) continue;
    const double own = length(steps.col(i));
    weights[i] *= static_cast<double>(d) / std::max(own * own, 1e-30);
  }
  const double kept =
      1 + k.c_1 * (1 - follows) * k.c_c * (2 - k.c_c) - k.c_1 - k.c_mu * k.weights.sum();
  Eigen::MatrixXd next = kept * state_.covariance;
  next += k.c_1 * state_.path_c * state_.path_c.transpose();
  next += k.c_mu * steps * weights.asDiagonal() * steps.transpose();
  state_.covariance = positive_definite((next + next.transpose()) / 2);
  ++state_.generation;
  decompose();
  keep_margin(state_, cells_, k.lambda);
}

bool Cma::has_converged() const {
  const double condition = scales_.maxCoeff() / scales_.minCoeff();
  if (condition * condition >= kWorstCondition) return true;
  const Eigen::VectorXd deviations =
      state_.sigma * state_.spread.cwiseProduct(state_.covariance.diagonal().cwiseSqrt());
  bool has_real = false;
  for (std::size_t j = 0; j < cells_.size(); ++j) {
    if (cells_[j]) continue;
    has_real = true;
    if (deviations[static_cast<Eigen::Index>(j)] >= kSmallestSpread * first_sigma_) return false;
  }
  return has_real;
}

}  // namespace troupe::tune
