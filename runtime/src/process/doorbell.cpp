#include "process/doorbell.hpp"

#include <algorithm>
#include <memory>

#include <sched.h>

namespace troupe::process {
namespace {

std::unique_ptr<ring::Bell>& bell() {
  static auto& one = *new std::unique_ptr<ring::Bell>(ring::Bell::create());  // used until the last moment
  return one;
}

}  // namespace

Deadline deadline_after(std::optional<std::chrono::milliseconds> timeout) {
  if (!timeout || *timeout > std::chrono::hours(24 * 365)) return std::nullopt;
  return Clock::now() + *timeout;
}

ring::Bell& doorbell() { return *bell(); }
void renew_doorbell() { bell() = ring::Bell::create(); }

Spin& Spin::of_this_thread() {
  thread_local Spin spin;
  return spin;
}

void Spin::pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
void Spin::yield() { ::sched_yield(); }

bool Spin::worth() {
  budget_ = std::min(budget_ + budget_ / 2, kMost);
  return true;
}

/// A sleep that was over at once should have been looked through.
void Spin::slept(std::chrono::nanoseconds time) {
  budget_ = time < kMost ? std::min(budget_ * 2, kMost) : std::max(budget_ / 2, kLeast);
}

}  // namespace troupe::process
