#include "searchers/nsga2/variation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::tune {
namespace {

constexpr double kSameCoordinate = 1e-14;

/// How far from the middle of its parents, as a part of their distance, a child lies: the inverse of
/// the distribution of which `room` is the largest such part that stays in bounds.
double spread(double room, double index, double u) {
  const double alpha = 2 - std::pow(room, -(index + 1));
  const double part = u <= 1 / alpha ? u * alpha : 1 / (2 - u * alpha);
  return std::pow(part, 1 / (index + 1));
}

/// Another one of the values, each equally likely.
double other_category(const Axis& axis, double x, Random& random) {
  const auto values = static_cast<std::uint64_t>(axis.values());
  const auto own = axis.category_at(x);
  const auto drawn = static_cast<std::size_t>(random.below(values - 1));
  return axis.coordinate_of_category(drawn < own ? drawn : drawn + 1);
}

/// The next cell of an integer on the side to which `moved` lies; on the other one at an end.
double neighbour_cell(const Axis& axis, double x, double moved) {
  const bool wants_up = moved == x ? x < 0.5 : moved > x;
  const auto wanted = axis.neighbour(x, wants_up);
  return wanted ? *wanted : axis.neighbour(x, !wants_up).value_or(x);
}

}  // namespace

double crossed(double a, double b, double index, Random& random) {
  if (std::abs(a - b) < kSameCoordinate) return a;
  const auto [low, high] = std::minmax(a, b);
  const double distance = high - low, middle = (low + high) / 2;
  const bool is_lower = random.below(2) == 0;
  const double room = 1 + 2 * (is_lower ? low : 1 - high) / distance;
  const double half = spread(room, index, random.unit()) * distance / 2;
  return std::clamp(is_lower ? middle - half : middle + half, 0.0, 1.0);
}

double mutated(double x, double index, Random& random) {
  const double u = random.unit(), power = index + 1;
  if (u < 0.5)
    return std::clamp(x + std::pow(2 * u + (1 - 2 * u) * std::pow(1 - x, power), 1 / power) - 1,
                      0.0, 1.0);
  return std::clamp(x + 1 - std::pow(2 * (1 - u) + (2 * u - 1) * std::pow(x, power), 1 / power),
                    0.0, 1.0);
}

GenePoint crossed(const Axes& axes, const GenePoint& a, const GenePoint& b, double index,
                  Random& random) {
  GenePoint child = a;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (random.below(2) == 0) continue;
    if (axes[i].is_number())
      child[i] = axes[i].settled(crossed(a[i], b[i], index, random));
    else if (random.below(2) == 0)
      child[i] = b[i];
  }
  return child;
}

void mutate_field(const Axis& axis, double& x, double index, Random& random) {
  if (!axis.is_number()) {
    x = other_category(axis, x, random);
    return;
  }
  const double moved = mutated(x, index, random);
  const double settled = axis.settled(moved);
  x = settled == x && axis.kind() == Axis::Kind::Integer ? neighbour_cell(axis, x, moved) : settled;
}

void mutate(const Axes& axes, GenePoint& point, const Nsga2Options& options, Random& random) {
  const double probability =
      options.mutation > 0 ? options.mutation : 1 / static_cast<double>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (random.unit() < probability)
      mutate_field(axes[i], point[i], options.mutation_index, random);
  }
}

}  // namespace troupe::tune
