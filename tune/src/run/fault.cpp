#include "run/fault.hpp"

#include <csignal>

namespace troupe::tune {
namespace {

bool was_killed(int signal) { return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

}  // namespace

Fault fault_of(const Failure& failure, bool begun) {
  using Kind = Failure::Kind;
  constexpr int kLostWithNode = -1;
  switch (failure.kind) {
    case Kind::Disconnected:
    case Kind::Program:  // of user code's own errors it is none: those come home as Task
      return Fault::System;
    case Kind::ObjectLost:  // a checkpoint on its way, as long as the function has not begun
    case Kind::StoreFull:
      return begun ? Fault::Trial : Fault::System;
    case Kind::ProcessDied:
    case Kind::ActorDied:
    case Kind::GangBroken:
      if (failure.exit_code == kLostWithNode || (!begun && was_killed(failure.signal))) return Fault::System;
      return Fault::Trial;
    default:
      return Fault::Trial;
  }
}

}  // namespace troupe::tune
