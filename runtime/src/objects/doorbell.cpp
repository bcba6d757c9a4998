#include "objects/doorbell.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include <sched.h>

#include "api/bounded.hpp"

namespace troupe::runtime {
namespace {

std::atomic<ring::Bell*> bell{nullptr};  // never given up: used until the last moment

}  // namespace

Deadline deadline_after(std::optional<std::chrono::milliseconds> timeout) {
  if (!timeout || *timeout >= kLongestWait) return std::nullopt;
  return Clock::now() + bounded(*timeout);
}

ring::Bell& doorbell() {
  [[maybe_unused]] static const bool made = [] {
    if (!bell.load()) bell.store(ring::Bell::create().release());
    return true;
  }();
  return *bell.load(std::memory_order_acquire);
}

void renew_doorbell() {
  if (!bell.load()) return;  // the one that is to be made is this process's
  delete bell.exchange(ring::Bell::create().release());
}

Spin& Spin::of_this_thread() {
  thread_local Spin spin;
  return spin;
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

}  // namespace troupe::runtime
