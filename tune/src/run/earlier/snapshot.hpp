#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <troupe/tune/experiment.hpp>

#include "output/report_files.hpp"
#include "text/json.hpp"

namespace troupe::tune::detail {

/// All that a run is after its first `events` events, so that its journal may begin anew behind them.
///
///   1. It is written only while every file has all of its records, and while the run is open.
///   2. It is there before the journal begins anew: a crash in between leaves a journal whose first
///      events the snapshot has, and these are passed over.
///   3. A run that goes on from snapshot and journal is in the state that the whole journal gives.
///
/// The file has two lines of JSON, each with a checksum: what stands here, and the experiment's state.
struct Snapshot {
  std::uint64_t events = 0;
  Seconds now{0};
  ReportFiles::Mark files = {};
  Json record = {};             ///< of RunRecord
  Json keeper = {};             ///< of CheckpointKeeper
  std::string experiment = {};  ///< Experiment::save()
};

std::string to_text(const Snapshot& snapshot);
/// Throws std::invalid_argument where it is no snapshot, was altered, or is one of another version.
Snapshot snapshot_from(std::string_view text);

/// Of the run in `folder`, whose snapshot has this text. Throws std::runtime_error, with the file,
/// where snapshot_from throws.
Snapshot snapshot_in(const std::filesystem::path& folder, std::string_view text);

}  // namespace troupe::tune::detail
