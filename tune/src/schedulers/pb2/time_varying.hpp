#pragma once

#include <troupe/tune/random.hpp>

#include "searchers/gp/kernel.hpp"

/// A Gaussian process over configurations and time that forgets (pb2.hpp, rules 3 and 4). Pure.
namespace troupe::tune {

/// Points in [0, 1]^d, one a row, each at its own time.
struct TimedPoints {
  Eigen::MatrixXd x;
  Eigen::VectorXd t;
};

struct TimeVaryingParameters {
  GpParameters gp;
  double omega = 0.1;  ///< part of what is known that is forgotten in two units of time, 0 to 1
};

/// All ones, and omega 0.1.
TimeVaryingParameters default_time_varying(Eigen::Index dimensions);

/// Variance of the noise of each observation at least, where y has variance 1.
inline constexpr double kLeastImprovementNoise = 1e-4;

/// scale * exp(-d2 / 2) * (1 - omega)^(|t - t'| / 2), d2 the sum over the coordinates of
/// inverse_squared_length * distance^2 (Bogunovic, Scarlett and Cevher, 2016, as Parker-Holder et
/// al., 2020, take it over).
Eigen::MatrixXd time_varying_kernel(const TimedPoints& rows, const TimedPoints& columns,
                                    const TimeVaryingParameters& parameters);

/// Log of the marginal likelihood of y plus log of the priors (fit.hpp; of omega a uniform one), up to
/// a constant, and its gradient by the logarithms of the inverse squared lengths, of the scale and of
/// the noise above the least, and by log(omega / (1 - omega)). Minus infinity where the covariance is
/// not positive definite. Cost: O(n^3 + d n^2).
double log_posterior(const TimedPoints& points, const Eigen::VectorXd& y,
                     const TimeVaryingParameters& parameters, Eigen::VectorXd& gradient);

/// The parameters with the highest log_posterior that L-BFGS finds from `start`.
TimeVaryingParameters fitted(const TimedPoints& points, const Eigen::VectorXd& y,
                             const TimeVaryingParameters& start);

/// What the process knows after its observations, and with points whose values are awaited: these
/// take away variance, and leave the mean as it is (GP-BUCB, Desautels, Krause and Burdick, 2014).
class TimeVaryingPosterior {
 public:
  struct Moments {
    double mean = 0;
    double variance = 0;  ///< of the function, without the noise; at least 0
  };

  /// Asserts that there is an observation.
  TimeVaryingPosterior(const TimedPoints& observed, const Eigen::VectorXd& y,
                       const TimedPoints& awaited, TimeVaryingParameters parameters);

  Moments at(const Eigen::VectorXd& x, double t) const;
  /// mean + kappa * deviation, and its gradient by x. Cost: O(n^2).
  double upper_bound(const Eigen::VectorXd& x, double t, double kappa,
                     Eigen::VectorXd& gradient) const;

 private:
  TimedPoints points_;  // observed, then awaited
  TimeVaryingParameters parameters_;
  Eigen::MatrixXd factor_;   // lower Cholesky factor of their covariance
  Eigen::VectorXd weights_;  // of the observed ones
};

/// The x in [0, 1]^d with the highest upper bound at time t that is found: L-BFGS climbs from the
/// best of random points and of `near`, one a row.
Eigen::VectorXd highest_upper_bound(const TimeVaryingPosterior& posterior, double t, double kappa,
                                    const Eigen::MatrixXd& near, Random& random);

}  // namespace troupe::tune
