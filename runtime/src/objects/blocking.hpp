#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "objects/doorbell.hpp"
#include "objects/object.hpp"
#include "objects/process_context.hpp"

namespace troupe::runtime {

/// Told apart from a wait that is over soon: only then is it worth two messages to the head.
inline constexpr std::chrono::milliseconds kSoon{1};

/// Waits, on a user's thread, until `done()`; -> false: the deadline came first. While user code
/// waits, its CPU may go to others; before it goes on, it gets one back (docs/scheduler.md,
/// "blocked"). `arm` is called each time before it sleeps.
template <class Done, class Arm>
bool wait_giving_cpu_back(ProcessContext& process, Done done, Arm arm, Deadline deadline) {
  const ProcessContext::Waiting waiting(process);
  if (!detail::uses_cpu()) return wait(done, arm, deadline);
  const auto soon = Clock::now() + kSoon;
  if (wait(done, arm, deadline ? std::min(*deadline, soon) : soon)) return true;

  process.give_cpu_back();
  const auto arrived = wait(done, arm, deadline);
  const auto resumed = process.take_cpu_again();
  // Replies are still this thread's to take: what they free may be the very CPU that it waits for.
  wait(
      [&] {
        done();
        return resumed->ready();
      },
      arm, std::nullopt);
  process.has_cpu_again();
  return arrived;
}
template <class Done>
bool wait_giving_cpu_back(ProcessContext& process, Done done, Deadline deadline) {
  return wait_giving_cpu_back(
      process, done, [] {}, deadline);
}

}  // namespace troupe::runtime
