#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::process {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

/// `timeout` from now; nullopt stays for ever.
Deadline deadline_after(std::optional<std::chrono::milliseconds> timeout);

/// What the user's threads of this process sleep on. Any thread may ring and wait. One futex word, so that a wait for
/// several things at once is one system call; a ring costs an atomic add where nobody sleeps.
class Doorbell {
 public:
  void ring();

  /// Returns as soon as `done()` is true (-> true), or at the deadline (-> what done() says then).
  /// `done` is evaluated on this thread, after each ring.
  template <class Done>
  bool wait(Done&& done, Deadline deadline) {
    for (;;) {
      const auto seen = rings_.load(std::memory_order_acquire);
      if (done()) return true;
      if (!sleep(seen, deadline)) return done();
    }
  }

 private:
  /// False at the deadline. Returns at once if the bell has rung since `seen`.
  bool sleep(std::uint32_t seen, Deadline deadline);

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

/// The one of this process.
Doorbell& doorbell();

}  // namespace troupe::process
