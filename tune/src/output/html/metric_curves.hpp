#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "text/json.hpp"

namespace troupe::tune {

/// What trials reported beside the searched metric, from a run's reports.jsonl: for each metric an
/// object {"name": ..., "curves": {"0": [[t, value], ...], ...}}, by name; a value that is not finite is
/// null. Of each curve there are at most so many points that all together are not many more than
/// `most_points`; where two points for each trial are too many, the last metrics are left out. Lines that are no
/// reports are passed over. Of a file of more than kMostBytes there are none. Cost: O(bytes of the file).
struct MetricCurves {
  static constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

  Json metrics = Json::array();
  std::string left_out = {};  ///< why some are not there, for the reader; empty: all are
};

MetricCurves metric_curves(const std::filesystem::path& reports, const std::string& searched,
                           std::size_t most_points);

}  // namespace troupe::tune
