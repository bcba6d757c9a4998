#include "searchers/gp/acquisition.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "searchers/gp/lbfgs.hpp"
#include "searchers/normal.hpp"
#include "searchers/quasi_random/sequences.hpp"

namespace troupe::tune {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kVarianceFloor = 1e-12;  // of the deviation that is divided by
constexpr int kMostRounds = 8;            // of climbing along real coordinates and trying values
constexpr double kNearby[] = {0.1, 0.03, 0.01, 0.003};
constexpr Eigen::Index kPerDistance = 16;

/// Below it 1 - (asymptotic series) is taken instead of a difference of two nearly equal numbers.
constexpr double kFarBelow = -25;

double deviation_of(const GpPosterior::Moments& moments) {
  return std::sqrt(moments.variance + kVarianceFloor);
}

/// The improvement over what is known, as a function of the point.
class Improvement {
 public:
  Improvement(const GpPosterior& posterior, const std::vector<GpCoordinate>& coordinates)
      : posterior_{posterior}, coordinates_{coordinates} {}

  double at(const Vector& x) const { return at_all(x.transpose())[0]; }

  Vector at_all(const Matrix& points) const {
    const auto moments = posterior_.at(points);
    Vector values(points.rows());
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      const auto& each = moments[static_cast<std::size_t>(i)];
      values[i] = log_improvement(each.mean, deviation_of(each), posterior_.best()).value;
    }
    return values;
  }

  /// Minus the improvement, with a gradient that is 0 along what is tried value by value.
  double loss(const Vector& x, Vector& gradient) const {
    GpPosterior::Gradients gradients;
    const auto moments = posterior_.at(x, gradients);
    const double deviation = deviation_of(moments);
    const auto improvement = log_improvement(moments.mean, deviation, posterior_.best());
    gradient = -improvement.by_mean * gradients.mean -
               improvement.by_deviation / (2 * deviation) * gradients.variance;
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      if (!coordinates_[static_cast<std::size_t>(j)].values.empty()) gradient[j] = 0;
    }
    return -improvement.value;
  }

  Vector settled(Vector x) const {
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      const auto& coordinate = coordinates_[static_cast<std::size_t>(j)];
      if (coordinate.settled) x[j] = coordinate.settled(x[j]);
    }
    return x;
  }

  /// Each coordinate that has few values takes the best of them, one after the other.
  bool try_values(Vector& x, double& value) const {
    bool has_moved = false;
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      const auto& values = coordinates_[static_cast<std::size_t>(j)].values;
      if (values.empty()) continue;
      Matrix points = x.transpose().replicate(std::ssize(values), 1);
      for (Eigen::Index i = 0; i < points.rows(); ++i)
        points(i, j) = values[static_cast<std::size_t>(i)];
      Eigen::Index best = 0;
      const double highest = at_all(points).maxCoeff(&best);
      if (highest <= value + 1e-9) continue;
      x[j] = points(best, j);
      value = highest;
      has_moved = true;
    }
    return has_moved;
  }

  bool has_smooth_coordinates() const {
    return std::ranges::any_of(coordinates_, [](const auto& each) { return each.values.empty(); });
  }

 private:
  const GpPosterior& posterior_;
  const std::vector<GpCoordinate>& coordinates_;
};

struct Climbed {
  Vector x;
  double value;
};

Climbed climbed(const Improvement& improvement, Vector x) {
  double value = improvement.at(x);
  const Vector low = Vector::Zero(x.size()), high = Vector::Ones(x.size());
  const SmoothFunction loss = [&](const Vector& at, Vector& gradient) {
    return improvement.loss(at, gradient);
  };
  for (int round = 0; round < kMostRounds; ++round) {
    if (improvement.has_smooth_coordinates()) {
      const auto up = minimize(loss, x, low, high, {.iterations = 60, .gradient = 1e-4});
      x = up.x;
      value = -up.value;
    }
    if (!improvement.try_values(x, value)) break;
  }
  const Vector settled = improvement.settled(x);
  return {settled, settled == x ? value : improvement.at(settled)};
}

Matrix drawn_candidates(const Matrix& incumbents, Eigen::Index d, std::size_t count,
                        Random& random) {
  const auto from_sobol = static_cast<Eigen::Index>(count);
  const auto near = incumbents.rows() > 0 ? std::ssize(kNearby) * kPerDistance : 0;
  Matrix points(from_sobol + near + incumbents.rows(), d);
  SobolSequence sobol(static_cast<std::size_t>(d), random.next());
  Eigen::Index next = 0;
  for (; next < from_sobol; ++next) {
    const auto point = sobol.point(static_cast<std::uint64_t>(next));
    points.row(next) = Eigen::Map<const Eigen::RowVectorXd>(point.data(), d);
  }
  for (Eigen::Index i = 0; i < near; ++i, ++next) {
    for (Eigen::Index j = 0; j < d; ++j) {
      const double moved = incumbents(0, j) + kNearby[i / kPerDistance] * draw_normal(random);
      points(next, j) = std::clamp(moved, 0.0, 1.0);
    }
  }
  points.bottomRows(incumbents.rows()) = incumbents;
  return points;
}

/// Rows to climb from: the best one, and others drawn in proportion to their improvement, none
/// twice.
std::vector<Eigen::Index> drawn_starts(const Vector& values, std::size_t count, Random& random) {
  Eigen::Index best = 0;
  const double highest = values.maxCoeff(&best);
  Vector odds = (values.array() - highest).exp();
  std::vector<Eigen::Index> starts;
  for (auto next = best; starts.size() < count;) {
    starts.push_back(next);
    odds[next] = 0;
    const double sum = odds.sum();
    if (!(sum > 0)) break;
    double left = random.unit() * sum;
    for (next = 0; next + 1 < odds.size() && (left -= odds[next]) >= 0;) ++next;
    if (odds[next] == 0) odds.maxCoeff(&next);  // rounding took it past the last one
  }
  return starts;
}

}  // namespace

LogImprovement log_improvement(double mean, double deviation, double best) {
  assert(deviation > 0);
  const double z = (mean - best) / deviation;
  // Of z Phi(z) + phi(z), where Phi and phi are the normal distribution and its density.
  double log_sum = 0;
  if (z > kFarBelow) {
    log_sum = std::log(z * normal_cdf(z) + std::exp(normal_log_density(z)));
  } else {
    const double step = 1 / (z * z);
    const double series = step * (1 - step * (3 - step * (15 - step * 105)));
    log_sum = normal_log_density(z) + std::log(series);
  }
  return {log_sum + std::log(deviation), std::exp(normal_log_cdf(z) - log_sum) / deviation,
          std::exp(normal_log_density(z) - log_sum) / deviation};
}

Eigen::VectorXd maximized_improvement(const GpPosterior& posterior,
                                      const std::vector<GpCoordinate>& coordinates,
                                      const Eigen::MatrixXd& incumbents, Random& random,
                                      const MaximizeOptions& options) {
  const Improvement improvement(posterior, coordinates);
  auto points = drawn_candidates(incumbents, std::ssize(coordinates), options.candidates, random);
  for (Eigen::Index i = 0; i < points.rows(); ++i)
    points.row(i) = improvement.settled(points.row(i).transpose()).transpose();
  const auto values = improvement.at_all(points);
  auto starts = drawn_starts(values, options.climbs, random);
  if (incumbents.rows() > 0) starts.push_back(points.rows() - incumbents.rows());

  Climbed best{points.row(starts.front()).transpose(), values[starts.front()]};
  for (const auto start : starts) {
    auto next = climbed(improvement, points.row(start).transpose());
    if (next.value > best.value) best = std::move(next);
  }
  return best.x;
}

}  // namespace troupe::tune
