#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// Tells trackers what a run did before its snapshot, whose events no journal has any more, from the
/// first `bytes` of reports.jsonl: of each trial a launch, its reports, and a launch for each time
/// that t went back (a takeover); at last how those ended that are in no gang. `trials` are those of
/// the snapshot. Lines that cannot be read are passed over. Cost: reads all reports.
void tell_earlier_reports(const std::filesystem::path& folder, std::uintmax_t bytes,
                          const std::vector<Trial>& trials,
                          const std::function<void(const Event& event, const Trial& trial)>& tell);

}  // namespace troupe::tune
