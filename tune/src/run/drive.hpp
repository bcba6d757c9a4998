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
  /// For trials that are told to end with the run, before they are ended; 0: they are ended at once.
  Seconds end_grace{0};
  /// How the options give these two, for people; empty: they do not.
  std::string stop_grace_text = {};
  std::string end_grace_text = {};
  Seconds notice_silence{0};  ///< as Options::notice_silence
  /// What ends a trial that stays silent, behind the notice of one; empty: nothing can be said.
  std::string for_silent_trials = {};
  /// How the options ask for the gang of a trial, for the error where there can be none: ".each".
  std::string gang = {};
  /// Gangs differ in size: one that can never be placed fails its trial alone.
  bool sizes_differ = false;
  /// Errors of trials are told without names of C++, to who wrote none.
  bool plain_errors = false;
};

struct DriveHooks {
  /// Called before what the experiment has been told of is acted on: before a report is answered, a
  /// gang asked for, or an event waited for. What has happened until then is to be kept.
  std::function<void()> keep = {};
  /// Called at least every 250 ms of the launcher's time.
  std::function<void(Seconds now)> tick = {};
  /// Why the run has to end, without waiting for reports, if it has.
  std::function<std::optional<std::string>()> interrupted = {};
  std::function<void(const std::string&)> notice = {};  ///< what people should know
  /// The search's name of a checkpoint that a gang reported; empty: its path.
  std::function<std::string(const std::string& path)> name_of_checkpoint = {};
  /// What is waited for, and for how long at most, where nothing else would be shown.
  std::function<void(const std::string&)> waits = {};
};

/// Runs the experiment to its end. While there is something to launch, one gang more is asked for
/// than there are places known to be free: the cluster always has a request that it puts where
/// resources become free next, and gangs that end together are replaced together, not each after
/// the start of the one before. A place counts as free for a second: those of a lost node would
/// have trials chosen for them long before they can run. Reports that have come together are judged
/// one after the other, kept together, and then answered. Throws Impossible, after every gang in
/// flight was ended, where the cluster can never place such a gang, unless gangs differ in size or
/// the trial's has grown. -> the cluster has ended meanwhile.
bool drive(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
           const DriveHooks& hooks);

}  // namespace troupe::tune
