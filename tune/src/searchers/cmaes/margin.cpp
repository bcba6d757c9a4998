#include "searchers/cmaes/margin.hpp"

#include <algorithm>
#include <cmath>

#include "searchers/normal.hpp"

namespace troupe::tune {
namespace {

constexpr double kRounding = 1e-13;  // of the ends of the first and the last cell

/// What keep_margin changes of one coordinate.
struct Marginal {
  double mean;
  double deviation;
};

/// In the first or the last cell there is one border to cross: the mean stays near enough to it.
double mean_near(double border, const Marginal& at, double margin) {
  const double farthest = at.deviation * normal_quantile(1 - margin);
  const double distance = std::min(std::abs(at.mean - border), farthest);
  return at.mean < border ? border - distance : border + distance;
}

/// Between two borders: both tails have half the margin at least, and what that adds is taken from
/// the others in proportion.
Marginal within(double low, double high, const Marginal& at, double margin) {
  const double least = margin / 2;
  const double below = normal_cdf((low - at.mean) / at.deviation);
  const double above = normal_cdf((at.mean - high) / at.deviation);
  if (below >= least && above >= least) return at;
  const double inside = 1 - below - above;
  const double raised_below = std::max(least, below), raised_above = std::max(least, above);
  const double share = (1 - raised_below - raised_above - inside) /
                       (raised_below + raised_above + inside - 3 * least);
  const double to_low = normal_quantile(1 - (raised_below + share * (raised_below - least)));
  const double to_high = normal_quantile(1 - (raised_above + share * (raised_above - least)));
  const double both = to_low + to_high;
  return {(low * to_high + high * to_low) / both, (high - low) / both};
}

}  // namespace

void keep_margin(CmaState& state, const std::vector<CellOf>& cells, std::size_t lambda) {
  const double margin = 1 / (static_cast<double>(cells.size()) * static_cast<double>(lambda));
  for (std::size_t j = 0; j < cells.size(); ++j) {
    if (!cells[j]) continue;
    const auto at = static_cast<Eigen::Index>(j);
    const double unscaled = state.sigma * std::sqrt(state.covariance(at, at));
    const Marginal now{state.mean[at], unscaled * state.spread[at]};
    const auto [low, high] = cells[j](now.mean);
    const bool is_first = low <= kRounding, is_last = high >= 1 - kRounding;
    if (is_first || is_last) {
      state.mean[at] = mean_near(is_first ? high : low, now, margin);
      continue;
    }
    const auto kept = within(low, high, now, margin);
    state.mean[at] = kept.mean;
    state.spread[at] = kept.deviation / unscaled;
  }
}

}  // namespace troupe::tune
