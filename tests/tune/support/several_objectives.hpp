#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
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

/// The area that the points dominate below the reference; what is not finite dominates nothing.
inline double hypervolume(std::vector<TwoValues> points, const TwoValues& reference) {
  std::ranges::sort(points);
  double area = 0, lowest = reference.second;
  for (const auto& [first, second] : points) {
    if (!std::isfinite(first) || !(first < reference.first) || !(second < lowest)) continue;
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
