#pragma once

#include <chrono>
#include <optional>

#include "os/futex.hpp"
#include "ring/bell.hpp"

namespace troupe::runtime {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

/// `timeout` from now; nullopt, and kLongestWait or more, is for ever.
Deadline deadline_after(std::optional<std::chrono::milliseconds> timeout);

/// What the user's threads of this process sleep on. Any thread may ring it; other processes
/// through their channels.
ring::Bell& doorbell();
/// In a copy of a process: a bell of its own, before anybody uses it.
void renew_doorbell();

/// Looks for a while before it sleeps: as long as that has paid of late on this thread. What
/// answers within microseconds is then met awake; what takes long costs a few microseconds of
/// looking. It yields to whoever else could run.
class Spin {
 public:
  /// True as soon as `poll` is. False once it is time to sleep.
  template <class Poll>
  bool until(Poll&& poll) {
    for (int i = 0; i < kShort; ++i) {
      if (poll()) return true;
      os::relax();
    }
    const auto start = Clock::now();
    while (Clock::now() - start < budget_) {
      for (int i = 0; i < kShort; ++i) {
        if (poll()) return worth();
        os::relax();
      }
      yield();
    }
    return false;
  }
  /// How long the sleep was that followed.
  void slept(std::chrono::nanoseconds time);

  static Spin& of_this_thread();

 private:
  static constexpr int kShort = 32;
  static constexpr std::chrono::nanoseconds kLeast{2'000};
  static constexpr std::chrono::nanoseconds kMost{50'000};
  static void yield();
  bool worth();

  std::chrono::nanoseconds budget_ = kLeast;
};

/// Returns as soon as `poll()` is true (-> true), or at the deadline (-> what poll() says then).
/// `poll` is evaluated on this thread, again and again and after each ring; `arm` before each
/// sleep: what it sets has the bell rung from afar.
template <class Poll, class Arm>
bool wait(Poll&& poll, Arm&& arm, Deadline deadline) {
  auto& bell = doorbell();
  auto& spin = Spin::of_this_thread();
  for (;;) {
    if (spin.until(poll)) return true;
    const ring::Bell::Sleeper sleeper(bell);
    const auto seen = bell.rings();
    arm();
    if (poll()) return true;
    const auto start = Clock::now();
    if (deadline && *deadline <= start) return false;
    timespec left{};
    if (deadline) {
      const auto rest = std::chrono::nanoseconds(*deadline - start).count();
      left = {rest / 1'000'000'000, rest % 1'000'000'000};
    }
    bell.sleep(seen, deadline ? &left : nullptr);
    spin.slept(Clock::now() - start);
  }
}
template <class Poll>
bool wait(Poll&& poll, Deadline deadline) {
  return wait(
      poll, [] {}, deadline);
}

}  // namespace troupe::runtime
