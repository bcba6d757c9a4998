#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/trainable.hpp>

#include "progress/progress_estimate.hpp"

namespace troupe::train {

/// What one line says of a run.
struct ProgressView {
  std::string label = {};  ///< of the run, for people
  ProgressEstimate estimate = {};
  Metrics metrics = {};       ///< of the last report
  std::uint64_t reports = 0;  ///< so far
  double elapsed_s = 0;
  bool has_ended = false;
  bool is_stopped = false;  ///< ended before its end, by a verdict
};

/// "train  epoch 2/10 [####......]  14%  3,120 rows/s  0:12  ETA 1:23  loss 0.123": as much of it
/// as fits into `columns` characters, in one line without its end. Pure. The bar takes what room
/// there is; where there is too little, the last metrics go first, then the time that has passed,
/// the label, the bar and the rate. Of a run that has ended the rate is the mean of the whole run,
/// and no time is left. `now`: in seconds of the estimate's clock. Control characters and what is
/// not UTF-8 are replaced.
std::string render_progress(const ProgressView& view, double now, std::size_t columns);

/// "3,120", "31.2", "0.312".
std::string short_number(double value);
/// "0:07", "12:34", "1:02:03", "2 d 01:02:03".
std::string clock_time(double seconds);
/// What people call a function: "fit" of "(anonymous namespace)::fit" and of "shop::fit<int>".
std::string label_of_function(std::string_view function);

}  // namespace troupe::train
