#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <troupe/tune/detail/search.hpp>

#include "output/html/run_record.hpp"
#include "run/checkpoints/checkpoint_keeper.hpp"
#include "run/earlier/snapshot.hpp"

/// Goes on with an earlier run from what its folder has. Everything here is read before anything in that
/// folder is changed: a run that is refused stays as it was.
namespace troupe::tune::detail {

/// Which run of a plan's storage a search is to go on with.
struct RunToTakeUp {
  std::filesystem::path folder = {};  ///< empty: a new run is to begin
  /// Of the last run, which has come to its end; empty: there is none, or `folder` is it.
  std::filesystem::path over = {};
  std::string notice = {};  ///< about files of the last run that are damaged; empty: none is
};
/// `header`: of the journal of `experiment`. Throws std::invalid_argument where the plan asks for a run
/// that there is not.
RunToTakeUp run_to_take_up(const Plan& plan, const Experiment& experiment,
                           const std::string& header);

/// What the folder of an earlier run has, and the events that bring an experiment to where that run was.
struct TakenUp {
  std::string journal = {};  ///< its lines that are whole
  Snapshot known = {};       ///< before the journal's events; empty: there is none
  bool has_more = false;     ///< the search may have more trials than the run was begun with

  /// Of the run, by the end of the journal.
  std::uint64_t events() const;
  /// A machine that lost power may have lost the end of a journal that the snapshot knows.
  bool lacks_events() const { return journal.empty() || events() < known.events; }
};
/// Loads the snapshot into `experiment`, which has no events yet, `record` and `keeper`; the journal's events
/// are the caller's to apply, and are known to apply. Throws std::runtime_error for a folder that is damaged or
/// of another version, and std::invalid_argument, with what differs, where it is of another search.
TakenUp take_up(const Plan& plan, const std::filesystem::path& folder, const std::string& header,
                Experiment& experiment, RunRecord& record, CheckpointKeeper& keeper);

/// Where the search may have more trials than the run was begun with: makes the run's journal one with as
/// many. -> what people are told; empty: it is not so. Throws std::runtime_error with the path and the cause.
std::string give_more_trials(TakenUp& taken, const std::filesystem::path& folder,
                             const std::string& header);

}  // namespace troupe::tune::detail
