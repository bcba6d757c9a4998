#include "importance/ped_anova.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>

#include <troupe/tune/lineage.hpp>

namespace troupe::tune {
namespace {

constexpr std::size_t kSteps = 50;
constexpr double kBest = 0.1;  // part of the trials

/// Scott's rule, at least half a step wide.
double bandwidth(std::span<const double> points) {
  const auto n = static_cast<double>(points.size());
  double mean = 0, squares = 0;
  for (const double x : points) mean += x / n;
  for (const double x : points) squares += (x - mean) * (x - mean) / n;
  return std::max(1.059 * std::sqrt(squares) * std::pow(n, -0.2), 0.5 / kSteps);
}

/// The probabilities of steps in [0, 1], with one uniform trial more, so that none is 0.
std::vector<double> density(const Axis& axis, std::span<const double> points) {
  const auto steps = axis.is_number() ? kSteps : static_cast<std::size_t>(axis.values());
  std::vector<double> parts(steps, 1.0 / static_cast<double>(steps));
  const double width = axis.is_number() ? bandwidth(points) : 0;
  for (const double x : points) {
    if (!axis.is_number()) {
      parts[axis.category_at(x)] += 1;
      continue;
    }
    std::vector<double> kernel(steps);
    double sum = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double z = ((static_cast<double>(i) + 0.5) / kSteps - x) / width;
      sum += kernel[i] = std::exp(-0.5 * z * z);
    }
    for (std::size_t i = 0; i < steps; ++i) parts[i] += kernel[i] / sum;
  }
  for (auto& part : parts) part /= static_cast<double>(points.size() + 1);
  return parts;
}

double divergence(const std::vector<double>& best, const std::vector<double>& all) {
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] * std::pow(best[i] / all[i] - 1, 2);
  return sum;
}

/// The coordinates of the trials that have this field, the best trial first.
std::vector<double> points_of(const Axis& axis, const std::vector<const Trial*>& best_first) {
  std::vector<double> points;
  for (const auto* trial : best_first) {
    const auto& config = config_of_best(*trial);
    const auto at = std::ranges::find(config, axis.name(), &Configuration::value_type::first);
    if (at == config.end()) continue;
    try {
      points.push_back(axis.coordinate_of(at->second));
    } catch (const std::invalid_argument&) {
      // A population may have moved it out of the space that it was drawn from.
    }
  }
  return points;
}

}  // namespace

std::vector<std::optional<double>> ped_anova(const Axes& axes, const Objective& objective,
                                             std::vector<const Trial*> trials, std::size_t least) {
  const auto score = [&](const Trial* trial) { return objective.score(*trial->best); };
  std::ranges::stable_sort(trials, std::greater{}, score);
  std::vector<std::optional<double>> parts;
  double sum = 0;
  for (const auto& axis : axes) {
    auto& part = parts.emplace_back();
    const auto points = points_of(axis, trials);
    if (points.empty() || points.size() < least) continue;
    const auto best =
        static_cast<std::size_t>(std::ceil(kBest * static_cast<double>(points.size())));
    const auto of_all = density(axis, points);
    const auto of_best = density(axis, std::span(points).first(best));
    part = divergence(of_best, of_all);
    sum += *part;
  }
  for (auto& part : parts) {
    if (part) part = sum > 0 ? *part / sum : 0;
  }
  return parts;
}

}  // namespace troupe::tune
