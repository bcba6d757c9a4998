#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include <troupe/tune/random.hpp>

namespace troupe::tune {

/// The constants of the (mu/mu_w, lambda)-CMA-ES with active covariance update: Hansen, "The CMA
/// Evolution Strategy: A Tutorial", arXiv 1604.00772, table 1 (of 2023), in the letters used there.
struct CmaConstants {
  /// `lambda` 0: 4 + floor(3 ln d). Asserts d >= 1 and lambda == 0 or lambda >= 2.
  CmaConstants(std::size_t d, std::size_t lambda);

  std::size_t lambda;       ///< points in a generation
  std::size_t mu;           ///< of them with a positive weight
  Eigen::VectorXd weights;  ///< of all lambda, the best first; the positive ones add up to 1
  double mu_eff;
  double c_sigma;
  double d_sigma;
  double c_c;
  double c_1;
  double c_mu;
  double chi;  ///< the expected length of a standard normal vector
};

/// Where the search stands; all that a generation changes.
struct CmaState {
  Eigen::VectorXd mean;
  double sigma = 0;
  Eigen::MatrixXd covariance;
  Eigen::VectorXd path_sigma;
  Eigen::VectorXd path_c;
  Eigen::VectorXd
      spread;  ///< A of CMA-ES with margin: factors of the standard deviations, 1 at first
  std::uint64_t generation = 0;  ///< since the start or the last restart
};

/// Both ends of the interval around x in which the function is constant; empty for a coordinate on
/// which it is not: a real one.
using CellOf = std::function<std::pair<double, double>(double x)>;

/// One of the results that make a generation.
struct CmaPoint {
  Eigen::VectorXd x;   ///< as it was drawn
  bool is_own = true;  ///< drawn from the distribution as it stands, not from an earlier one
};

/// One CMA-ES in [0, 1]^d. Knows no trials, scores or files; all of its state is state().
///
/// Bounds: a point outside is drawn again, 100 times at most, and is moved to the boundary then.
/// Whole numbers: the distribution keeps a probability of 1/(d lambda) at least of leaving the cell
/// of the mean: CMA-ES with margin (Hamano, Saito, Nomura and Shirakawa, 2022, arXiv 2205.13482,
/// section 4).
/// Points from an earlier distribution count like others, but their steps are cut to the length
/// sqrt(d) + 2d/(d+2) in the metric of the covariance (Hansen, "Injecting external solutions into
/// CMA-ES", 2011, arXiv 1110.4181).
/// Cost: O(d^2) to draw a point, O(d^3 + lambda d^2) for a generation.
class Cma {
 public:
  /// Asserts that `mean` is in [0, 1]^d, sigma > 0, and that `cells` has d functions.
  Cma(const Eigen::VectorXd& mean, double sigma, std::size_t population, std::vector<CellOf> cells);

  Eigen::VectorXd draw(Random& random) const;
  /// A generation is over. `best_first` has lambda points.
  void update(std::span<const CmaPoint> best_first);
  /// True where further generations gain nothing: the deviation of every real coordinate is below
  /// 1e-12 of the first one, or the covariance's condition number is above 1e14.
  bool has_converged() const;

  const CmaConstants& constants() const { return constants_; }
  const CmaState& state() const { return state_; }
  /// Takes up another state of the same d.
  void set_state(CmaState state);

 private:
  void decompose();
  Eigen::VectorXd step_of(const CmaPoint& point) const;
  double length(const Eigen::VectorXd& y) const;
  bool move_sigma(const Eigen::VectorXd& mean_step);

  CmaConstants constants_;
  double first_sigma_;
  std::vector<CellOf> cells_;
  CmaState state_;
  // The covariance is basis * diag(scales^2) * basis^T.
  Eigen::MatrixXd basis_;
  Eigen::VectorXd scales_;
};

}  // namespace troupe::tune
