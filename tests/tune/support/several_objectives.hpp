#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "support/search_runs.hpp"

namespace troupe::tune {

/// Two objectives, both to be minimised.
using TwoValues = std::pair<double, double>;

/// Two objectives over numbers in [0, 1] (Zitzler, Deb and Thiele, 2000, "Comparison of
/// multiobjective evolutionary algorithms: empirical results", section 4). The best front of ZDT1 is
/// convex, that of ZDT2 is not, and g = 1 on both.
inline double zdt_g(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return 1 + 9 * sum / static_cast<double>(x.size() - 1);
}
inline TwoValues zdt1(const std::vector<double>& x) {
  const double g = zdt_g(x);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}
inline TwoValues zdt2(const std::vector<double>& x) {
  const double g = zdt_g(x);
  return {x[0], g * (1 - x[0] / g * (x[0] / g))};
}

/// Two objectives with constraints over two numbers in [0, 1], and how far beyond the limits they are
/// (0: not): CONSTR and TNK of Deb et al. (2002), table V, whose ranges are taken from [0, 1].
struct Constrained {
  TwoValues values = {};
  double violation = 0;
};
inline double beyond(double limit, double value) {  // has to be at least the limit
  return std::max(0.0, limit - value) / (limit == 0 ? 1 : std::abs(limit));
}
inline Constrained constr(const std::vector<double>& x) {
  const double a = 0.1 + 0.9 * x[0], b = 5 * x[1];
  return {{a, (1 + b) / a}, beyond(6, b + 9 * a) + beyond(1, 9 * a - b)};
}
inline Constrained tnk(const std::vector<double>& x) {
  const double a = std::numbers::pi * x[0], b = std::numbers::pi * x[1];
  const double wave = 0.1 * std::cos(16 * std::atan2(a, b));
  const double off = (a - 0.5) * (a - 0.5) + (b - 0.5) * (b - 0.5);
  return {{a, b}, beyond(1, a * a + b * b - wave) + beyond(-0.5, -off)};
}

/// The area that the points dominate below the reference. Points that are not finite dominate nothing, and cannot be
/// sorted with the others: a value that is not a number has no place in an order.
inline double hypervolume(std::vector<TwoValues> points, const TwoValues& reference) {
  std::erase_if(points, [](const TwoValues& point) {
    return !std::isfinite(point.first) || !std::isfinite(point.second);
  });
  std::ranges::sort(points);
  double area = 0, lowest = reference.second;
  for (const auto& [first, second] : points) {
    if (first >= reference.first || second >= lowest) continue;
    area += (reference.first - first) * (lowest - second);
    lowest = second;
  }
  return area;
}

inline SearchSetup two_objectives(SearchSpace space, std::uint64_t trials, std::uint64_t seed) {
  return {.space = std::move(space),
          .objective = {"a", Min},
          .seed = seed,
          .trials = trials,
          .objectives = {{"a", Min}, {"b", Min}}};
}

/// The trial makes one report and ends.
inline void end_with(Searcher& searcher, TrialId trial, const TwoValues& values) {
  TrialEnd end{.last = values.first, .t = 1, .values = {values.first, values.second}};
  if (std::isfinite(values.first)) end.best = values.first;
  searcher.on_end(trial, end);
}

/// The values of the trials that keep to the constraints, nan of the others, of a search one trial
/// after the other. Without `is_told` the searcher knows nothing of them.
inline std::vector<TwoValues> searched_constrained(
    const SearcherFactory& factory, Constrained (*problem)(const std::vector<double>& x),
    std::uint64_t trials, std::uint64_t seed, bool is_told = true) {
  auto setup = two_objectives(cube(2, 0, 1), trials, seed);
  if (is_told) setup.constraints = {{"c", AtMost, 0}};
  const auto searcher = factory(setup);
  std::vector<TwoValues> kept;
  for (TrialId trial = 0; trial < trials; ++trial) {
    const auto [values, violation] = problem(numbers_of(suggested(*searcher, trial)));
    searcher->on_end(trial, {.best = values.first,
                             .last = values.first,
                             .t = 1,
                             .values = {values.first, values.second},
                             .violation = is_told ? violation : 0});
    const double nan = std::nan("");
    kept.push_back(violation == 0 ? values : TwoValues{nan, nan});
  }
  return kept;
}

/// The values of each trial of a search from its beginning, `at_once` trials under way, which end in
/// the order in which they began.
inline std::vector<TwoValues> searched(const SearcherFactory& factory, const SearchSpace& space,
                                       const std::function<TwoValues(const Configuration&)>& values,
                                       std::uint64_t trials, std::uint64_t seed,
                                       std::size_t at_once = 1) {
  const auto searcher = factory(two_objectives(space, trials, seed));
  std::vector<TwoValues> all;
  std::size_t ended = 0;
  for (TrialId trial = 0; trial < trials; ++trial) {
    if (all.size() - ended == at_once) {
      end_with(*searcher, ended, all[ended]);
      ++ended;
    }
    all.push_back(values(suggested(*searcher, trial)));
  }
  return all;
}

inline double median_hypervolume(const SearcherFactory& factory, const SearchSpace& space,
                                 const std::function<TwoValues(const Configuration&)>& values,
                                 const TwoValues& reference, std::uint64_t trials,
                                 std::uint64_t seeds, std::size_t at_once = 1) {
  std::vector<double> areas;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    areas.push_back(
        hypervolume(searched(factory, space, values, trials, seed, at_once), reference));
  return median(std::move(areas));
}

}  // namespace troupe::tune
