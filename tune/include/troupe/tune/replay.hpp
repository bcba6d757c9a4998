#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/tune/run.hpp>

namespace troupe::tune {

/// What the folder of a run (`storage/run-1`) says of one trial.
struct RecordedSchedule {
  Objective objective = {};
  std::uint64_t seed = 0;
  /// That led to the trial's best report; one where it had taken over nobody.
  std::vector<Segment> segments = {};
};

/// Reads the schedule of a trial. A run that is active, or whose driver died, can be read too. Throws
/// std::runtime_error, naming the file, if a file cannot be read, and std::invalid_argument if the run
/// has no such trial.
RecordedSchedule recorded_schedule(const std::filesystem::path& folder, TrialId trial);

/// Trains one trial from the start with the configurations of a schedule: at the first checkpoint
/// with t >= after_t of the next segment, the attempt ends and the next goes on from that checkpoint
/// with the segment's configuration.
SchedulerFactory follow(std::vector<Segment> segments);
/// Suggests this one configuration.
SearcherFactory only(Configuration configuration);

/// Trains the schedule of hyperparameters that led to the best report of a trial of an earlier run
/// (Results::schedule() of the best trial), from its first step through its donors, once more, as
/// one trial in one gang and in a data order of its own:
///
///   auto again = tune::replay<train_digits>("results/pbt/run-1", 5, {.each = {.workers = 2}, .storage = "results/again"});
///
/// In `options`, space, trials, first, known and searcher are refused if given, and a scheduler is not
/// used. The metric is the earlier run's unless another is named. `seed` 0 means a seed that the
/// earlier run did not have. Throws like run() and recorded_schedule().
template <auto fn>
Results<troupe::detail::trainable_config<fn>> replay(
    const std::filesystem::path& folder, TrialId trial,
    Options<troupe::detail::trainable_config<fn>> options = {}) {
  auto recorded = recorded_schedule(folder, trial);
  if (!options.space.empty() || options.trials > 0 || options.searcher || !options.first.empty() ||
      !options.known.empty())
    throw std::invalid_argument(
        "tune: a replay has no .space, .trials, .first, .known or .searcher: the earlier run's "
        "schedule says it");
  for (const auto& segment : recorded.segments) configured(options.config, segment.config);
  if (options.metric.empty() && options.objectives.empty()) {
    options.metric = recorded.objective.metric;
    options.mode = recorded.objective.mode;
  }
  if (options.seed == 0) options.seed = Random(recorded.seed, trial, "replay").next();
  options.trials = 1;
  options.searcher = only(recorded.segments.front().config);
  options.scheduler = follow(std::move(recorded.segments));
  return run<fn>(std::move(options));
}

}  // namespace troupe::tune
