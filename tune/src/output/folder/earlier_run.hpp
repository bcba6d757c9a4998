#pragma once

#include <filesystem>
#include <string>

/// What earlier runs have left in their folders and in a storage.
namespace troupe::tune {

/// What the run in this folder wrote down, as text.
struct EarlierRun {
  std::string journal = {};
  std::string snapshot = {};  ///< empty: there is none
};
/// Also of a run that goes on: the snapshot is at least as new as the journal. Throws
/// std::runtime_error with the path and the cause.
EarlierRun read_earlier(const std::filesystem::path& folder);

inline constexpr auto* kSnapshotFile = "snapshot.jsonl";

/// Throws std::runtime_error, which names what is there, where the folder has something of what a run
/// writes and its journal has not even its first line: that run has lost what it knew, and is no new one.
void refuse_without_journal(const std::filesystem::path& folder);

/// An earlier run in a storage.
struct LastRun {
  std::filesystem::path folder = {};  ///< empty: there is none
  bool is_over = false;               ///< it has nothing left to run
  std::string ended_as_asked = {};    ///< why, where its StopWhen ended it
  /// Of a summary.json that cannot be read, the file and the place in it. `is_over` and
  /// `ended_as_asked` say nothing then: the journal does.
  std::string damaged_summary = {};
};
/// The run-N with the highest N of those that have begun. `sweep_file`, if it is not empty: of those
/// that belong to a sweep file of this name, or say of none that they do. Throws as
/// refuse_without_journal() where a later one has lost its journal, and std::runtime_error, which
/// names the files that the runs belong to, where all belong to others.
LastRun last_run(const std::filesystem::path& storage, const std::string& sweep_file = {});

/// What is wrong with the summary of a run, with the file and the place in it; empty: nothing, or
/// there is none.
std::string damage_of_summary(const std::filesystem::path& folder);
/// Of a run that goes on, until it has written another.
void remove_summary(const std::filesystem::path& folder);

/// The folder itself where it is a run's, else the last run in it. Throws std::runtime_error where
/// there is none, and as last_run().
std::filesystem::path run_in(const std::filesystem::path& folder);

/// The command of `troupe tune` that goes on with the run in `folder`, for the sweep of
/// `sweep_file`. It names the folder unless that is the file's last run in `storage`, which the
/// command goes on with by itself. Empty where `sweep_file` is: a program's own search.
std::string resume_command(const std::string& sweep_file, const std::filesystem::path& storage,
                           const std::filesystem::path& folder);

}  // namespace troupe::tune
