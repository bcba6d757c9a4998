#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/detail/simulate.hpp>

namespace troupe::tune {

/// What replaces the cluster and the training function in a preview.
template <class Config>
struct Simulation {
  /// The metric that a trial with this configuration reports as its report t, from 1; a function,
  /// or a table of learning curves. Has to be given where `curves` is not.
  std::function<double(const Config&, std::int64_t t)> curve = {};
  /// In place of `curve`, in a run with several objectives: the value of each, in their order, and
  /// then of the metric of each constraint that is none of them.
  std::function<std::vector<double>(const Config&, std::int64_t t)> curves = {};
  /// How long a trial trains for one report; empty: a second.
  std::function<Seconds(const Config&)> step = {};
  /// Reports after which a trial's function returns, if nothing ends it earlier.
  std::int64_t reports = 100;
  std::size_t gangs = 1;  ///< that the cluster has room for at once
  Seconds launch{0};      ///< from a free place to the first step of the trial that takes it
};

using detail::Improvement;
using detail::Reached;

/// What a search would do.
template <class Config>
struct Preview {
  Results<Config> results;  ///< of the run; its duration() is in the simulation's time
  /// How many trials reach each rung, by t, and behind the last rung how many come furthest; empty if
  /// the scheduler has no rungs.
  std::vector<Reached> reached = {};
  std::uint64_t steps = 0;  ///< trained by all trials: the budget that was used
  /// The steps if each trial came as far as the furthest.
  std::uint64_t steps_unstopped = 0;
  std::uint64_t launches = 0;  ///< of gangs, resumptions among them
  double busy = 0;             ///< part of the places' time in which a trial trained, 0 to 1
  std::vector<Improvement> improvements =
      {};  ///< in order; the last one is the best that was found. Empty with several objectives
  std::vector<std::string> notices = {};  ///< the notices that the run would have shown

  /// That all times are virtual, the summary of the run, how many trials reach each rung, the budget
  /// (steps, launches, how busy the places were), and when the best value was found.
  friend std::ostream& operator<<(std::ostream& out, const Preview& preview) {
    return out << detail::preview_text(preview.results.summary(),
                                       {.reached = preview.reached,
                                        .steps = preview.steps,
                                        .steps_unstopped = preview.steps_unstopped,
                                        .launches = preview.launches,
                                        .busy = preview.busy,
                                        .improvements = preview.improvements});
  }
};

namespace detail {
template <class Config>
Preview<Config> previewed(const Options<Config>& options, const Simulation<Config>& simulation) {
  const auto config_of = [&](const Configuration& values) {
    return configured<Config>(options.config, values);
  };
  World world{
      .reports = simulation.reports, .gangs = simulation.gangs, .launch = simulation.launch};
  if (simulation.curve) {
    world.curve = [&](const Configuration& values, std::int64_t t) {
      return simulation.curve(config_of(values), t);
    };
  }
  if (simulation.curves) {
    world.curves = [&](const Configuration& values, std::int64_t t) {
      return simulation.curves(config_of(values), t);
    };
  }
  if (simulation.step)
    world.step = [&](const Configuration& values) { return simulation.step(config_of(values)); };
  auto simulated = simulate(plan_of(options), world);
  auto& numbers = simulated.numbers;
  return {.results = Results<Config>(std::move(simulated.outcome), options.config),
          .reached = std::move(numbers.reached),
          .steps = numbers.steps,
          .steps_unstopped = numbers.steps_unstopped,
          .launches = numbers.launches,
          .busy = numbers.busy,
          .improvements = std::move(numbers.improvements),
          .notices = std::move(simulated.notices)};
}
}  // namespace detail

/// Previews what tune::run would do with these options: the same searcher, scheduler and
/// experiment, in virtual time and without a cluster. The gang, storage and display of `options`
/// are ignored; every report has a checkpoint. `options.max_concurrent` limits `gangs` further.
/// Deterministic. Throws like run for invalid options.
///
///   const auto preview = tune::simulate(options, {.curve = guess, .gangs = 16});
///   std::cout << preview;  // trials that reach each rung, and the end: t=1: 243, t=3: 81, ...
template <class Config>
Preview<Config> simulate(const Options<Config>& options, const Simulation<Config>& simulation) {
  if constexpr (!detail::kIsConfiguration<Config>)
    std::abort();  // the compiler has said why, and no program comes of it
  else
    return detail::previewed(options, simulation);
}

}  // namespace troupe::tune
