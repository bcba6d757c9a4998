#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/tune/searcher.hpp>

#include "support/functions.hpp"

namespace troupe::tune {

/// Of real numbers and integers.
inline std::vector<double> numbers_of(const Configuration& configuration) {
  std::vector<double> numbers;
  for (const auto& [name, value] : configuration) {
    const auto* whole = std::get_if<std::int64_t>(&value.value());
    numbers.push_back(whole ? static_cast<double>(*whole) : std::get<double>(value.value()));
  }
  return numbers;
}

/// Suggests a configuration that the searcher has to have.
inline Configuration suggested(Searcher& searcher, TrialId trial) {
  auto suggestion = searcher.suggest(trial);
  if (!std::holds_alternative<Configuration>(suggestion))
    throw std::logic_error("the searcher suggests nothing");
  return std::get<Configuration>(std::move(suggestion));
}

/// The trial makes one report and ends.
inline void end_with(Searcher& searcher, TrialId trial, double value) {
  searcher.on_report(trial, 1, value);
  const bool is_finite = std::isfinite(value);
  searcher.on_end(trial,
                  {.best = is_finite ? std::optional(value) : std::nullopt, .last = value, .t = 1});
}

/// A search from its beginning, `at_once` trials under way, which end in the order in which they
/// began. -> the lowest value so far, after each trial.
inline std::vector<double> lowest_so_far(const SearcherFactory& factory, const SearchSpace& space,
                                         const std::function<double(const Configuration&)>& value,
                                         std::uint64_t trials, std::uint64_t seed,
                                         std::size_t at_once = 1) {
  const auto searcher =
      factory({.space = space, .objective = {"loss", Min}, .seed = seed, .trials = trials});
  std::vector<double> lowest;
  std::deque<std::pair<TrialId, double>> running;
  const auto end_first = [&] {
    const auto [trial, found] = running.front();
    running.pop_front();
    end_with(*searcher, trial, found);
    lowest.push_back(lowest.empty() || found < lowest.back() ? found : lowest.back());
  };
  for (TrialId trial = 0; trial < trials; ++trial) {
    if (running.size() == at_once) end_first();
    running.emplace_back(trial, value(suggested(*searcher, trial)));
  }
  while (!running.empty()) end_first();
  return lowest;
}

inline constexpr std::array<std::size_t, 4> kRegretsAt{25, 50, 100, 200};
using Regrets = std::array<double, kRegretsAt.size()>;

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The standard error of a median, whatever the distribution: half of the distance between the
/// values that stand sqrt(n)/2 places below and above it.
inline double error_of_median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const auto last = values.size() - 1;
  const auto below = static_cast<std::size_t>(std::max(0.0, std::floor((n - std::sqrt(n)) / 2)));
  const auto above = std::min(last, static_cast<std::size_t>(std::ceil((n + std::sqrt(n)) / 2)));
  return (values[above] - values[below]) / 2;
}

/// What the lowest value lies above the optimum after 25, 50, 100 and 200 trials, of searches with
/// the seeds 0, 1, ...
inline std::array<std::vector<double>, kRegretsAt.size()> regrets_of(const SearcherFactory& factory,
                                                                     const TestFunction& function,
                                                                     std::uint64_t seeds,
                                                                     std::size_t at_once = 1) {
  const auto value = [&](const Configuration& configuration) {
    return function.value(numbers_of(configuration));
  };
  std::array<std::vector<double>, kRegretsAt.size()> regrets;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto lowest =
        lowest_so_far(factory, function.space, value, kRegretsAt.back(), seed, at_once);
    for (std::size_t i = 0; i < kRegretsAt.size(); ++i)
      regrets[i].push_back(lowest[kRegretsAt[i] - 1] - function.optimum);
  }
  return regrets;
}

/// The medians of regrets_of.
inline Regrets median_regrets(const SearcherFactory& factory, const TestFunction& function,
                              std::uint64_t seeds, std::size_t at_once = 1) {
  auto regrets = regrets_of(factory, function, seeds, at_once);
  Regrets medians{};
  for (std::size_t i = 0; i < kRegretsAt.size(); ++i) medians[i] = median(std::move(regrets[i]));
  return medians;
}

/// Random search as a factory, to compare with.
inline SearcherFactory random_search() {
  return [](const SearchSetup& setup) {
    return std::make_unique<RandomSearcher>(setup.space, setup.seed, setup.trials);
  };
}

}  // namespace troupe::tune
