#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <troupe/tune/experiment.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

struct DriveLimits {
  std::size_t max_concurrent = 0;  ///< trials in flight; 0: as many as the launcher can place
  Seconds time_budget{0};          ///< no launches after it; 0: none
  /// For a trial to end once it was told to stop, or the run was closed; then it is ended.
  Seconds stop_grace{10};
  /// Gangs differ in size: one that can never be placed fails its trial alone.
  bool sizes_differ = false;
};

struct DriveHooks {
  /// Called at least every 250 ms of the launcher's time.
  std::function<void(Seconds now)> tick = {};
  /// Why the run has to end at once, if it has.
  std::function<std::optional<std::string>()> interrupted = {};
  std::function<void(const std::string&)> notice = {};  ///< what people should know
};

/// Runs the experiment to its end: one gang asked for at any time that there is something to
/// launch, so that the cluster always has one request more than it has placed and puts it where
/// resources become free. Throws Impossible, after every gang in flight was ended, where the
/// cluster can never place such a gang, unless gangs differ in size or the trial's has grown.
void drive(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
           const DriveHooks& hooks);

}  // namespace troupe::tune
