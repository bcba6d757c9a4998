#include "output/html/importance.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>

#include <troupe/tune/lineage.hpp>

#include "searchers/axis.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kLeastTrials = 10;
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

struct Scored {
  double score = 0;
  std::vector<double> point = {};
};

/// Those with a value, the best first.
std::vector<Scored> scored(const Axes& axes, const Objective& objective,
                           const std::vector<Trial>& trials) {
  std::vector<Scored> all;
  for (const auto& trial : trials) {
    if (!trial.best) continue;
    try {
      all.push_back({objective.score(*trial.best), axes.point(config_of_best(trial))});
    } catch (const std::invalid_argument&) {
      // A population may have moved it out of the space that it was drawn from.
    }
  }
  std::ranges::stable_sort(all, std::greater{}, &Scored::score);
  return all;
}

}  // namespace

std::vector<std::pair<std::string, double>> importance(const SearchSpace& space,
                                                       const Objective& objective,
                                                       const std::vector<Trial>& trials) {
  const Axes axes(space);
  const auto all = scored(axes, objective, trials);
  if (all.size() < kLeastTrials) return {};
  const auto best = static_cast<std::size_t>(std::ceil(kBest * static_cast<double>(all.size())));
  std::vector<std::pair<std::string, double>> parts;
  double sum = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::vector<double> points;
    for (const auto& trial : all) points.push_back(trial.point[i]);
    const auto of_all = density(axes[i], points);
    const auto of_best = density(axes[i], std::span(points).first(best));
    parts.emplace_back(axes[i].name(), divergence(of_best, of_all));
    sum += parts.back().second;
  }
  for (auto& [name, part] : parts) part = sum > 0 ? part / sum : 0;
  std::ranges::stable_sort(parts, std::greater{}, &std::pair<std::string, double>::second);
  return parts;
}

}  // namespace troupe::tune
