#pragma once

#include <algorithm>
#include <chrono>

namespace troupe {

/// Stands for a wait without a limit.
inline constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24 * 365);

/// The time that a caller allows for a wait, from none to kLongestWait. Clocks count nanoseconds,
/// which overflow where std::chrono::milliseconds::max() is added to a time of theirs or compared
/// with one: the wait would be over as soon as it begins.
constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds limit) {
  return std::clamp(limit, std::chrono::milliseconds(0), kLongestWait);
}

}  // namespace troupe
