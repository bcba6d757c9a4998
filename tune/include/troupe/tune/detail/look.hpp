#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include <troupe/tune/detail/search.hpp>

namespace troupe::tune::detail {

/// What a run has come to so far: one that is over, that was killed, or that goes on meanwhile.
struct RunLook {
  Outcome outcome = {};
  bool is_over = false;     ///< nothing is left to run
  std::string holder = {};  ///< who runs it, as holder_of() has it; empty: nobody
  /// Of `troupe tune`, with which this run goes on; empty: it is a program's own search.
  std::string resume_command = {};
  std::string table;    ///< for people: its trials
  std::string summary;  ///< as summary.json has it
  std::string report;   ///< as report.html
};

/// Without a report, RunLook::report is empty, which takes most of the time.
enum class WithReport : bool { No, Yes };

/// Reads the files of a run of `plan` in `folder`; empty: the last one in the plan's storage. Writes
/// nothing. `most_rows`: of the table. Throws std::invalid_argument, with what differs, where it is a run of
/// another search, and std::runtime_error where there is none or it cannot be read. Cost: as
/// going on with it, and the report.
RunLook look_at_run(const Plan& plan, const std::filesystem::path& folder, std::size_t most_rows,
                    WithReport with_report = WithReport::Yes);

/// The same of a run of which nothing is known but its folder: of a sweep, or of a program's own
/// search. `folder`: the run's, or the one that has it as run-N; of several the highest N.
/// Throws std::runtime_error, with what the folder lacks. Cost: as the other, and less, as nothing is
/// decided again.
RunLook look_at_folder(const std::filesystem::path& folder, std::size_t most_rows,
                       WithReport with_report = WithReport::Yes);

/// Whether something is left to run of the run of `plan` in `folder`, and nobody runs it. Throws as
/// look_at_run(). Cost: as going on with it.
bool is_abandoned(const Plan& plan, const std::filesystem::path& folder);

}  // namespace troupe::tune::detail
