#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "process/doorbell.hpp"
#include "process/process.hpp"

namespace troupe::process {

/// Told apart from a wait that is over soon: only then is it worth two messages to the head.
inline constexpr std::chrono::milliseconds kSoon{1};

/// Waits, on a user's thread, until `done()`; -> false: the deadline came first. While user code waits, its CPU may go to
/// others; before it goes on, it gets one back (docs/scheduler.md, "blocked"). `arm` is called each time before it sleeps.
template <class Done, class Arm>
bool wait_giving_cpu_back(Process& process, Done done, Arm arm, Deadline deadline) {
  const Process::Waiting waiting(process);
  if (!Executor::is_this_thread()) return wait(done, arm, deadline);
  const auto soon = Clock::now() + kSoon;
  if (wait(done, arm, deadline ? std::min(*deadline, soon) : soon)) return true;

  process.post([&process] { process.head().post([](wire::Ask::Builder ask) { ask.setBlocked(); }); });
  const auto arrived = wait(done, arm, deadline);
  auto resumed = detail::Object::pending(0);
  process.post([&process, resumed] {
    process.head().ask([](wire::Ask::Builder ask) { ask.setUnblocked(); },
                       [resumed](wire::Tell::Reader) { resumed->complete(detail::Payload{}); },
                       [resumed](const Failure& failure) { resumed->complete(failure); });
  });
  // Replies are still this thread's to take: what they free may be the very CPU that it waits for.
  wait(
      [&] {
        done();
        return resumed->ready();
      },
      arm, std::nullopt);
  return arrived;
}
template <class Done>
bool wait_giving_cpu_back(Process& process, Done done, Deadline deadline) {
  return wait_giving_cpu_back(
      process, done, [] {}, deadline);
}

}  // namespace troupe::process
