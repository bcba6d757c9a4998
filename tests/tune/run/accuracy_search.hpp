#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include <troupe/tune/experiment.hpp>
#include <troupe/tune/schedulers/asha.hpp>

#include "run/fake_launcher.hpp"

/// A search over the `quality` of trials, which report an accuracy, in virtual time.
namespace troupe::tune::accuracy_search {

inline double quality(const Launch& launch) {
  return std::get<double>(launch.config.front().second.value());
}

/// The accuracy after report t: it grows towards the trial's quality.
inline double curve(const Launch& launch, std::int64_t t) {
  return quality(launch) * (1 - 1 / static_cast<double>(1 + t));
}

inline Experiment search_for(std::uint64_t trials, ExperimentOptions options = {},
                             SchedulerFactory scheduler = asha({.max_t = 27, .eta = 3})) {
  options.objective = {"accuracy", Max};
  options.seed = 3;
  return {options,
          std::make_unique<RandomSearcher>(SearchSpace{{"quality", uniform(0, 1)}}, 3, trials),
          scheduler(options.objective, 3)};
}

inline std::size_t count(const Experiment& experiment, Status status) {
  return static_cast<std::size_t>(std::ranges::count(experiment.trials(), status, &Trial::status));
}

}  // namespace troupe::tune::accuracy_search
