#pragma once

#include <chrono>
#include <optional>

namespace troupe::transport {

/// Tells the silence of others from that of this process: what was to come at a known time, a beat
/// or a timer, comes much too late only where this process itself was stopped or starved. What
/// others said meanwhile is still to be read then, so that time must not count against them. Lives
/// beside the timer, on its loop; a value.
class StallDetector {
 public:
  using Clock = std::chrono::steady_clock;

  /// `tolerance`: so late may anything come on a machine that is merely busy.
  explicit constexpr StallDetector(Clock::duration tolerance) : tolerance_(tolerance) {}

  void expect(Clock::time_point due) { due_ = due; }
  /// What was expected has come. -> how long this process stood still; zero where it did not, or
  /// nothing was expected.
  Clock::duration came(Clock::time_point now) {
    const auto stood = late(now);
    due_.reset();
    return stood;
  }
  /// For how long this process has stood still, where what is expected has not come yet.
  Clock::duration late(Clock::time_point now) const {
    if (!due_ || now - *due_ <= tolerance_) return {};
    return now - *due_;
  }

 private:
  Clock::duration tolerance_;
  std::optional<Clock::time_point> due_;
};

}  // namespace troupe::transport
