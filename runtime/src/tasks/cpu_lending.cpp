#include "tasks/cpu_lending.hpp"

#include <cassert>

namespace troupe::runtime {

CpuLending::Then CpuLending::begin_wait() {
  ++waiting_;
  if (state_ == State::Resuming) return Then::Nothing;
  state_ = State::Lent;
  return Then::SayBlocked;
}

CpuLending::Then CpuLending::end_wait() {
  assert(waiting_ > 0);
  --waiting_;
  if (state_ == State::Resuming) return Then::Nothing;
  if (waiting_ > 0) return Then::GoOn;
  state_ = State::Resuming;
  return Then::SayUnblocked;
}

CpuLending::Then CpuLending::resumed() {
  assert(state_ == State::Resuming);
  state_ = waiting_ > 0 ? State::Lent : State::Runs;
  return waiting_ > 0 ? Then::SayBlocked : Then::Nothing;
}

}  // namespace troupe::runtime
