#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <troupe/tune.hpp>

#include "support/several_objectives.hpp"

/// A search with two objectives, of which each is at the cost of the other.
namespace troupe::tune::error_and_latency {

struct Config {
  double width = 0.5;
  double rate = 0.5;
  int fails = 0;
};

/// The wider, the lower the error and the higher the latency.
inline double error_of(const Config& config, std::int64_t t) {
  return 1 / config.width + std::abs(config.rate - 0.3) + 1.0 / static_cast<double>(t);
}

inline void train(Context& ctx, const Config& config) {
  for (std::int64_t t = 1; t <= 3; ++t) {
    if (config.fails == 1) throw std::runtime_error("no memory");
    const auto latency =
        config.fails == 2 ? std::numeric_limits<double>::quiet_NaN() : config.width * 10;
    if (ctx.report({{"error", error_of(config, t)}, {"latency", latency}}) == Verdict::Stop) return;
  }
}

inline Options<Config> options() {
  return {.space = {{"width", uniform(0.1, 1)}, {"rate", uniform(0, 1)}},
          .trials = 40,
          .objectives = {{"error", Min}, {"latency", Min}},
          .seed = 4,
          .show = Show::None,
          .in_process = true};
}

inline Simulation<Config> simulation() {
  return {.curves =
              [](const Config& config, std::int64_t t) {
                return std::vector{error_of(config, t), config.width * 10};
              },
          .reports = 3,
          .gangs = 4};
}

inline TwoValues values_of(const TrialResult<Config>& result) {
  return {result.trial.values.at(0), result.trial.values.at(1)};
}

}  // namespace troupe::tune::error_and_latency
