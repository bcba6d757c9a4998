#include "searchers/normal.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/special_functions/erf.hpp>

namespace troupe::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHalfLogTwoPi = 0.91893853320467274178;

// Below it the cdf is computed by its asymptotic series.
constexpr double kFarTail = -25;

/// log(1 - exp(x)) for x <= 0 (Maechler, 2012).
double log_one_minus_exp(double x) {
  return x > -std::numbers::ln2 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

/// The logarithm of -x cdf(x) / density(x), x far out on the left: 1 - 1/x^2 + 3/x^4 - 15/x^6 ...
double log_of_asymptotic_series(double x) {
  const double step = 1 / (x * x);
  double term = 1, sum = 0;
  for (int factor = 1; factor <= 17; factor += 2) sum += term *= -factor * step;
  return std::log1p(sum);
}

/// Newton's method on the logarithm, which is concave: from the left it comes nearer at each step.
double far_quantile(double log_probability) {
  double x = -std::sqrt(-2 * log_probability);
  for (int step = 0; step < 50; ++step) {
    const double log_cdf = normal_log_cdf(x);
    const double change = (log_cdf - log_probability) / std::exp(normal_log_density(x) - log_cdf);
    x -= change;
    if (std::abs(change) <= 1e-15 * std::abs(x)) break;
  }
  return x;
}

}  // namespace

double normal_log_density(double x) { return -0.5 * x * x - kHalfLogTwoPi; }

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_log_cdf(double x) {
  if (x > 0) return std::log1p(-normal_cdf(-x));
  if (x > kFarTail) return std::log(normal_cdf(x));
  if (x == -kInfinity) return -kInfinity;
  return normal_log_density(x) - std::log(-x) + log_of_asymptotic_series(x);
}

double normal_quantile(double probability) {
  assert(probability >= 0 && probability <= 1);
  if (probability == 0) return -kInfinity;
  if (probability == 1) return kInfinity;
  using namespace boost::math::policies;
  constexpr policy<promote_double<false>> in_doubles;
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability, in_doubles);
}

double normal_log_quantile(double log_probability) {
  assert(log_probability <= 0);
  if (log_probability == -kInfinity) return -kInfinity;
  constexpr double smallest_probability = -300;  // below it erfc_inv would lose digits
  if (log_probability > -1e-3) return -normal_quantile(-std::expm1(log_probability));
  if (log_probability > smallest_probability) return normal_quantile(std::exp(log_probability));
  return far_quantile(log_probability);
}

double normal_log_mass(double low, double high) {
  assert(low <= high);
  if (low == high) return -kInfinity;
  if (low > 0) return normal_log_mass(-high, -low);
  if (high > 0) {
    const double mass =
        0.5 * (std::erf(high / std::numbers::sqrt2) - std::erf(low / std::numbers::sqrt2));
    return mass < 0.5 ? std::log(mass) : std::log1p(-normal_cdf(low) - normal_cdf(-high));
  }
  const double log_high = normal_log_cdf(high);
  return log_high + log_one_minus_exp(normal_log_cdf(low) - log_high);
}

double truncated_normal_quantile(double part, double low, double high) {
  assert(low <= high && part >= 0 && part <= 1);
  if (low > 0) return -truncated_normal_quantile(1 - part, -high, -low);
  const auto inside = [&](double x) { return std::clamp(x, low, high); };
  constexpr double left_tail = -4;  // here the differences of probabilities lose no digits yet
  if (high > left_tail) {
    const double below = normal_cdf(low), up_to = normal_cdf(high);
    return inside(normal_quantile(std::clamp(below + part * (up_to - below), 0.0, 1.0)));
  }
  // As logarithms, relative to the probability below `high`.
  const double log_high = normal_log_cdf(high);
  const double ratio = std::exp(normal_log_cdf(low) - log_high);
  const double share = ratio + part * (1 - ratio);
  if (share <= 0) return low;
  return inside(normal_log_quantile(std::min(log_high + std::log(share), 0.0)));
}

double draw_normal(Random& random) {
  return normal_quantile((static_cast<double>(random.next() >> 12) + 0.5) * 0x1p-52);
}

double draw_truncated_normal(Random& random, double mean, double deviation, double low,
                             double high) {
  assert(deviation > 0 && low <= high);
  const double x =
      truncated_normal_quantile(random.unit(), (low - mean) / deviation, (high - mean) / deviation);
  return std::clamp(mean + deviation * x, low, high);
}

}  // namespace troupe::tune
