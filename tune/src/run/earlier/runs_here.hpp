#pragma once

#include <filesystem>

/// The folders of the runs that this process has made or gone on with. Any thread.
namespace troupe::tune::detail {

void add_run_of_this_process(const std::filesystem::path& folder);
/// Whether .resume, which takes the last run of a storage, may mean another search of this program.
bool has_several_runs_in(const std::filesystem::path& storage);

}  // namespace troupe::tune::detail
