#pragma once

#include <vector>

#include "searchers/gp/kernel.hpp"

namespace troupe::tune {

/// What a Gaussian process is fitted to.
struct GpData {
  Eigen::MatrixXd x;  ///< a point a row
  Eigen::VectorXd y;  ///< standardized, higher is better
  std::vector<bool> is_category = {};
};

/// Variance of the noise of each observation at least, where y has variance 1. Optuna's 1e-6 hides
/// what a search still has to learn near the optimum of a function without noise.
inline constexpr double kLeastNoise = 1e-10;

/// Log of the priors below, up to a constant; its derivatives by the logarithms of the inverse squared
/// lengths, of the scale, and of the noise above `least_noise`, are added to `gradient`.
double log_prior(const GpParameters& parameters, double least_noise, Eigen::VectorXd& gradient);

/// Log of the marginal likelihood of the data (Rasmussen and Williams, 2006, equation 5.8) plus log
/// of the priors, up to a constant, and its gradient (equation 5.9) by the logarithms of the
/// inverse squared lengths, of the scale, and of the noise above kLeastNoise. Minus infinity where
/// the covariance is not positive definite. The priors are those of Optuna's GPSampler:
///   inverse squared length  exp(-0.1 / l - 0.1 l)
///   scale                   Gamma(2, 1)
///   noise                   Gamma(1.1, 30)
/// Cost: O(n^3 + d n^2).
double log_posterior(const GpData& data, const GpParameters& parameters, Eigen::VectorXd& gradient);

/// The parameters with the highest log_posterior that L-BFGS finds from any of the starts. Cost: 20
/// to 60 times that of log_posterior for each. Asserts that there is a start.
GpParameters fitted(const GpData& data, const std::vector<GpParameters>& starts);

/// All ones.
GpParameters default_parameters(Eigen::Index dimensions);

}  // namespace troupe::tune
