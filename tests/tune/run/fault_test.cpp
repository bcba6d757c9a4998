#include "run/fault.hpp"

#include <csignal>
#include <stdexcept>

#include <catch2/catch.hpp>

#include <troupe/tune/detail/checkpoints.hpp>

namespace fault_test {

using namespace troupe;
using namespace troupe::tune;
using Kind = Failure::Kind;

namespace {

Fault fault(Kind kind, int signal, int exit_code, bool begun) {
  return fault_of({.kind = kind, .signal = signal, .exit_code = exit_code}, begun);
}

/// What becomes of an attempt that does this.
template <class Throws>
GangEvent outcome_of(bool begun, Throws attempt) {
  try {
    attempt();
  } catch (...) {
    return failure_event(3, std::current_exception(), begun);
  }
  throw std::logic_error("it did not fail");
}

[[noreturn]] void die(int signal) {
  raise({.kind = Kind::ActorDied, .message = "process 7 was killed", .signal = signal});
}

}  // namespace

TEST_CASE("a lost connection, a lost node and a process that cannot start are the cluster's fault",
          "[tune][fault]") {
  const bool begun = GENERATE(false, true);
  CHECK(fault(Kind::Disconnected, 0, 0, begun) == Fault::System);
  CHECK(fault(Kind::Program, 0, 0, begun) == Fault::System);
  CHECK(fault(Kind::ActorDied, 0, -1, begun) == Fault::System);
  CHECK(fault(Kind::GangBroken, 0, -1, begun) == Fault::System);
}

TEST_CASE("a killed process is the cluster's fault until the function has begun", "[tune][fault]") {
  const auto kind = GENERATE(Kind::ProcessDied, Kind::ActorDied, Kind::GangBroken);
  CHECK(fault(kind, SIGKILL, 0, false) == Fault::System);
  CHECK(fault(kind, SIGTERM, 0, false) == Fault::System);
  CHECK(fault(kind, SIGKILL, 0, true) == Fault::Trial);
}

TEST_CASE("what ends by itself or throws is the trial's fault", "[tune][fault]") {
  const bool begun = GENERATE(false, true);
  CHECK(fault(Kind::ActorDied, SIGSEGV, 0, begun) == Fault::Trial);
  CHECK(fault(Kind::ActorDied, SIGABRT, 0, begun) == Fault::Trial);
  CHECK(fault(Kind::ActorDied, 0, 3, begun) == Fault::Trial);
  CHECK(fault(Kind::Task, 0, 0, begun) == Fault::Trial);
  CHECK(fault(Kind::TimedOut, 0, 0, begun) == Fault::Trial);
}

TEST_CASE("an attempt ends with the fault of what it threw", "[tune][fault]") {
  const auto killed_early = outcome_of(false, [] { die(SIGKILL); });
  CHECK(killed_early.kind == GangEvent::Kind::Failed);
  CHECK(killed_early.trial == 3);
  CHECK(killed_early.fault == Fault::System);
  CHECK(killed_early.text == "process 7 was killed");

  CHECK(outcome_of(true, [] { die(SIGKILL); }).fault == Fault::Trial);

  const auto never_placed = outcome_of(false, [] {
    raise({.kind = Kind::Program, .message = "worker process 9 on node 1 did not start: signal 9"});
  });
  CHECK(never_placed.fault == Fault::System);

  const auto impossible =
      outcome_of(false, [] { raise({.kind = Kind::Impossible, .message = "no gpu anywhere"}); });
  CHECK(impossible.kind == GangEvent::Kind::Impossible);
  CHECK(impossible.text == "no gpu anywhere");

  const auto threw = outcome_of(true, [] { throw std::runtime_error("no data"); });
  CHECK(threw.fault == Fault::Trial);
  CHECK(threw.text == "no data");

  const auto gone =
      outcome_of(false, [] { throw tune::detail::CheckpointGone("the checkpoint x is gone"); });
  CHECK(gone.fault == Fault::Checkpoint);
  CHECK(gone.text == "the checkpoint x is gone");

  CHECK(outcome_of(true, [] { throw 3; }).text == "it threw something that is no std::exception");
}

TEST_CASE("of a function in this process nothing is the cluster's fault", "[tune][fault]") {
  const auto thrown_here = [](Kind kind) {
    try {
      raise({.kind = kind, .message = "no answer", .exit_code = -1});
    } catch (...) {
      return failure_event_here(3, std::current_exception());
    }
  };
  for (const auto kind : {Kind::Impossible, Kind::Disconnected, Kind::Program, Kind::ProcessDied,
                          Kind::ActorDied, Kind::GangBroken, Kind::ObjectLost, Kind::StoreFull}) {
    const auto event = thrown_here(kind);
    CHECK(event.kind == GangEvent::Kind::Failed);
    CHECK(event.trial == 3);
    CHECK(event.fault == Fault::Trial);
    CHECK_FALSE(event.lost);
    CHECK(event.text == "no answer");
  }
  const auto gone = std::make_exception_ptr(tune::detail::CheckpointGone("it is gone"));
  CHECK(failure_event_here(3, gone).fault == Fault::Checkpoint);
}

}  // namespace fault_test
