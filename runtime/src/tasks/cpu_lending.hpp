#pragma once

#include <cstddef>

namespace troupe::runtime {

/// When a process tells the head that its CPU may go to others, and when that it needs its CPU again.
/// Made of the waits of those threads that lend the CPU (detail::CpuUse): the one that runs the
/// calls of others, one to which it has handed the work of a call, such as the function of a trial,
/// and threads of the program's own where IdleLoan says so. Pure; its owner is one loop.
///
///   [runs] --begin_wait: Blocked--> [lent] --end_wait, nobody waits: Unblocked--> [resuming]
///     ^                               ^                                             |  |
///     |                               +------- resumed, somebody waits: Blocked ----+  |
///     +------------------------------------------------- resumed, nobody waits --------+
///
/// 1. The CPU is lent while at least one of these threads waits, but for the time in [resuming].
/// 2. The head hears Blocked only when it has answered the Unblocked before.
/// 3. A thread whose wait is over goes on at the next resumed(), or at once where another one still
///    waits: then the CPU is lent on, and comes back with the last of them.
/// 4. A wait is told also where the CPU counts as lent: the thread that lent it may have been left
///    behind by a call whose lease has ended since, and the CPU of a new lease has not been lent. The
///    head takes no notice of what it knows.
class CpuLending {
 public:
  /// What the owner does now.
  enum class Then : unsigned char {
    Nothing,       ///< of end_wait: the thread goes on at the next resumed()
    SayBlocked,    ///< to the head
    SayUnblocked,  ///< to the head, whose answer is resumed(); the thread goes on with that
    GoOn,          ///< the thread, at once
  };

  /// A thread waits, and for longer than two messages are worth. -> SayBlocked or Nothing
  Then begin_wait();
  /// It has what it waited for. Asserts that it waits.
  Then end_wait();
  /// The head has answered, or never will. All threads whose wait is over go on. Asserts that an
  /// answer was to come. -> SayBlocked or Nothing
  Then resumed();

  /// Threads that wait.
  std::size_t waiting() const { return waiting_; }

 private:
  enum class State : unsigned char { Runs, Lent, Resuming };
  State state_ = State::Runs;
  std::size_t waiting_ = 0;
};

}  // namespace troupe::runtime
