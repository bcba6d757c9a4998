#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::launch {

/// The folder of a whole trial, runs/run-1/trials/3, of which `storage` is that folder or one within
/// it. Empty: `storage` is in no trial's folder. Pure.
std::string trial_folder_of(const std::string& storage);

/// SIGKILL to the programs of this trial that run on this machine, and to what they have started: an
/// earlier attempt has left them, where the processes that would have ended them were killed. Called
/// before the trial is started again, so that nobody else writes into its folders. Knows them by
/// TROUPE_TRIAL and TROUPE_CHECKPOINT_DIR in the environment that they were started with, and by the
/// folder itself, as other containers may have folders of the same name. Returns once they have
/// ended, and how many there were. Throws std::runtime_error where one still runs when the time is
/// over. Programs of other users, and on other machines, are not found.
///
/// `folder`: of the trial. Cost: reads /proc once, and again after each that was found.
std::size_t end_left_programs(const std::string& folder, std::chrono::milliseconds limit);

}  // namespace troupe::launch
