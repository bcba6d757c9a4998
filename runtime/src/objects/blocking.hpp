#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "objects/doorbell.hpp"
#include "objects/object.hpp"
#include "objects/process_context.hpp"
#include "os/threads.hpp"

namespace troupe::runtime {

/// Told apart from a wait that is over soon: only then is it worth two messages to the head.
inline constexpr std::chrono::milliseconds kSoon{1};

/// Whether the wait of a thread that the program itself has started lends the CPU that its process
/// holds for a call. Such a thread has no CPU of its own: the CPU is the call's, which may compute
/// meanwhile, and may as well wait for that thread. So the wait lends while the process computes
/// next to nothing, as is looked at in slices. Pure; the waiting thread's.
///
///   [kept] --a slice in which a call is here and the process is idle: Lend--> [lent]
///     ^                                                                         |
///     +------- a slice in which no call is here or the process computes: TakeBack
///
/// 1. Where a call computes, its CPU is asked back after two slices at most; the call goes on
///    meanwhile.
/// 2. Where a call waits for the thread, its CPU is lent after two slices at most.
class IdleLoan {
 public:
  using Duration = std::chrono::nanoseconds;
  enum class Then : unsigned char { Nothing, Lend, TakeBack };

  /// For how long to wait before passed() is called.
  Duration slice() const { return slice_; }
  /// So much time has passed, of which the threads of this process have computed for `computed` in
  /// all; `has_call`: the process holds a CPU for a call.
  Then passed(Duration time, Duration computed, bool has_call) {
    slice_ = std::min<Duration>(2 * slice_, kLongest);
    const bool lends = has_call && kIdle * computed < time;
    if (lends == is_lent_) return Then::Nothing;
    is_lent_ = lends;
    return lends ? Then::Lend : Then::TakeBack;
  }
  bool is_lent() const { return is_lent_; }

  static constexpr std::chrono::milliseconds kShortest{5}, kLongest{80};
  /// A process is idle that computes for less than one part in so many.
  static constexpr int kIdle = 10;

 private:
  Duration slice_ = kShortest;
  bool is_lent_ = false;
};

/// After give_cpu_back(): until the CPU is here again, or the process may go on without.
template <class Done, class Arm>
void wait_for_cpu(ProcessContext& process, Done done, Arm arm) {
  const auto resumed = process.take_cpu_again();
  // Replies are still this thread's to take: what they free may be the very CPU that it waits for.
  wait(
      [&] {
        done();
        return resumed->ready();
      },
      arm, std::nullopt);
  process.has_cpu_again();
}

/// wait_giving_cpu_back(), from kSoon on, on a thread of the program's own.
template <class Done, class Arm>
bool wait_lending_when_idle(ProcessContext& process, Done done, Arm arm, Deadline deadline) {
  IdleLoan loan;
  for (;;) {
    const auto begun = Clock::now();
    const auto computed = os::computed_here();
    const auto end = begun + loan.slice();
    const bool arrived = wait(done, arm, deadline ? std::min(*deadline, end) : end);
    const auto now = Clock::now();
    if (arrived || (deadline && *deadline <= now)) {
      // Without waiting for it: the CPU is the call's, and the thread needs none of its own.
      if (loan.is_lent()) process.take_cpu_again();
      return arrived;
    }
    const auto then = loan.passed(now - begun, os::computed_here() - computed, process.has_call());
    if (then == IdleLoan::Then::Lend) process.give_cpu_back();
    if (then == IdleLoan::Then::TakeBack) process.take_cpu_again();
  }
}

/// Waits, on a user's thread, until `done()`; -> false: the deadline came first. While user code
/// waits, its CPU may go to others (detail::CpuUse); before it goes on, it gets one back
/// (docs/scheduler.md, "blocked"). `arm` is called each time before it sleeps.
template <class Done, class Arm>
bool wait_giving_cpu_back(ProcessContext& process, Done done, Arm arm, Deadline deadline) {
  const ProcessContext::Waiting waiting(process);
  const auto use = detail::cpu_use();
  if (use == detail::CpuUse::None || !process.runs_calls()) return wait(done, arm, deadline);
  const auto soon = Clock::now() + kSoon;
  if (wait(done, arm, deadline ? std::min(*deadline, soon) : soon)) return true;
  if (use == detail::CpuUse::OfProgram) return wait_lending_when_idle(process, done, arm, deadline);

  process.give_cpu_back();
  const auto arrived = wait(done, arm, deadline);
  wait_for_cpu(process, done, arm);
  return arrived;
}
template <class Done>
bool wait_giving_cpu_back(ProcessContext& process, Done done, Deadline deadline) {
  return wait_giving_cpu_back(
      process, done, [] {}, deadline);
}

}  // namespace troupe::runtime
