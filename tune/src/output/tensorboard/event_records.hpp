#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/space.hpp>

#include "output/trackers/wall_clock.hpp"

/// The records of a TensorBoard event file: each a tensorboard.Event (event.proto, summary.proto,
/// and of the HParams plugin plugin_data.proto and api.proto) in the frame of a TFRecord.
namespace troupe::tune {

/// How a session of the HParams plugin ended.
enum class SessionEnd : std::uint8_t { Success = 1, Failure = 2 };

/// Length, its checksum, the data, their checksum: CRC-32C, masked as TFRecord has it.
std::string tf_record(std::string_view data);

/// The first record of every file.
std::string version_record(WallTime wall);
/// Tells a reader to forget what it has read of this run from `step` on.
std::string restart_record(WallTime wall, std::int64_t step);
/// One scalar for each metric, in single precision. What is not finite is written as it is.
std::string scalars_record(WallTime wall, std::int64_t step, const Metrics& metrics);
/// What the HPARAMS tab shows of all trials together: the fields and the metrics.
std::string experiment_record(WallTime wall, std::string_view title, const SearchSpace& space,
                              const std::vector<std::string>& metrics);
/// A trial begins with these hyperparameters.
std::string session_start_record(WallTime wall, const Configuration& configuration);
std::string session_end_record(WallTime wall, SessionEnd status);

}  // namespace troupe::tune
