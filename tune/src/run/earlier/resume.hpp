#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <troupe/tune/detail/search.hpp>

#include "output/html/run_record.hpp"
#include "run/checkpoints/checkpoint_keeper.hpp"
#include "run/earlier/snapshot.hpp"

/// Resumes an earlier run from what its folder has. Everything is read before anything in that folder is
/// changed: a run that is refused stays as it was.
namespace troupe::tune::detail {

/// Which run of a plan's storage a search is to resume.
struct RunToResume {
  std::filesystem::path folder = {};  ///< empty: a new run is to begin
  /// Of the last run, where that has come to its end and is not resumed; else empty.
  std::filesystem::path over = {};
  std::string notice = {};  ///< about files of the last run that are damaged; empty: none is
};
/// `header`: of the journal of `experiment`. Throws std::invalid_argument where the plan asks for a run
/// that there is not.
RunToResume run_to_resume(const Plan& plan, const Experiment& experiment,
                          const std::string& header);

/// What the folder of a run has that is resumed: the events that bring an experiment to where that run was.
struct ResumedRun {
  std::string journal = {};  ///< its lines that are whole
  Snapshot known = {};       ///< of the run before the journal's events; empty: there is none
  bool has_more = false;     ///< the search may have more trials than the run was begun with

  /// How many events the run had at the end of the journal.
  std::uint64_t events() const;
  /// A machine that lost power may have lost the end of a journal that the snapshot knows.
  bool lacks_events() const { return journal.empty() || events() < known.events; }
};
/// Loads the snapshot in `folder` into `experiment`, which has no events yet, `record` and `keeper`. The caller
/// applies the events of the journal, which are known to apply. Throws std::runtime_error for a folder that is damaged or
/// of another version, and std::invalid_argument, with what differs, where it is of another search.
ResumedRun resume_run(const Plan& plan, const std::filesystem::path& folder,
                      const std::string& header, Experiment& experiment, RunRecord& record,
                      CheckpointKeeper& keeper);

/// Where the search may have more trials than the run was begun with: makes the run's journal one with as
/// many. -> what people are told; empty: the search has no more. Throws std::runtime_error with the path and the
/// cause.
std::string give_more_trials(ResumedRun& run, const std::filesystem::path& folder,
                             const std::string& header);

}  // namespace troupe::tune::detail
