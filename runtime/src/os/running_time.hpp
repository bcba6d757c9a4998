#pragma once

#include <algorithm>
#include <chrono>

#include <poll.h>

namespace troupe::os {

/// How much of a deadline is left, of which only time counts that this process itself runs: who
/// waits for others does so in slices, and a slice that takes longer, as this process stood still
/// (a machine that is suspended or shared, a stopped or starved process), counts as one. A value.
/// On an asio loop there is transport::SilenceTimer.
class RunningTime {
 public:
  using Duration = std::chrono::steady_clock::duration;
  static constexpr std::chrono::milliseconds kSlice{100};

  explicit constexpr RunningTime(Duration time) : left_(time) {}

  /// For how long to wait before passed() is called.
  Duration slice() const { return std::min<Duration>(left_, kSlice); }
  /// A wait for a slice has taken so long.
  void passed(Duration time) { left_ -= std::min(time, slice()); }
  /// Waits by `wait`, which is given a slice and may end before.
  template <class Wait>
  void pass(Wait&& wait) {
    const auto begun = std::chrono::steady_clock::now();
    wait(std::chrono::ceil<std::chrono::milliseconds>(slice()));
    passed(std::chrono::steady_clock::now() - begun);
  }
  bool is_over() const { return left_ <= Duration::zero(); }

 private:
  Duration left_;
};

/// Waits until the descriptor can be read (a pidfd: until that process has ended), or so much time
/// has run. -> it can.
inline bool wait_readable(int fd, RunningTime time) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  for (;;) {
    const bool was_over = time.is_over();  // looked at once more: what was late may be there
    bool can_be_read = false;
    time.pass([&](std::chrono::milliseconds slice) {
      can_be_read = ::poll(&wait, 1, static_cast<int>(slice.count())) > 0;
    });
    if (can_be_read || was_over) return can_be_read;
  }
}

}  // namespace troupe::os
