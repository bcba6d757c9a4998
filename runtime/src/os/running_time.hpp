#pragma once

#include <algorithm>
#include <chrono>

#include <poll.h>

namespace troupe::os {

/// How much of a deadline is left, of which only time counts that this process itself runs: who
/// waits for others does so in slices, and a slice that takes longer, as this process stood still (a
/// machine that is suspended or shared, a stopped or starved process), counts as one. A value. On
/// an asio loop there is transport::SilenceTimer.
class RunningTime {
 public:
  using Duration = std::chrono::steady_clock::duration;
  static constexpr std::chrono::milliseconds kSlice{100};

  explicit constexpr RunningTime(Duration time) : left_(time) {}

  /// For how long to wait before passed() is called.
  Duration slice() const { return std::min<Duration>(left_, kSlice); }
  /// A wait for a slice has taken so long.
  void passed(Duration time) { left_ -= std::min(time, slice()); }
  bool is_over() const { return left_ <= Duration::zero(); }

 private:
  Duration left_;
};

/// Waits until the descriptor can be read (a pidfd: until that process has ended), or so much time
/// has run. -> it can.
inline bool wait_readable(int fd, RunningTime time) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    const auto slice = std::chrono::ceil<std::chrono::milliseconds>(time.slice());
    if (::poll(&wait, 1, static_cast<int>(slice.count())) > 0) return true;
    if (time.is_over()) return false;  // looked at once more: what was late may be there
    time.passed(std::chrono::steady_clock::now() - begun);
  }
}

}  // namespace troupe::os
