#include "run/fault.hpp"

#include <csignal>
#include <stdexcept>

#include <catch2/catch.hpp>

#include <troupe/tune/detail/checkpoints.hpp>

#include "run/thread_launcher.hpp"

using namespace troupe;
using namespace troupe::tune;
using Kind = Failure::Kind;

namespace {

Fault fault(Kind kind, int signal, int exit_code, bool begun) {
  return fault_of({.kind = kind, .signal = signal, .exit_code = exit_code}, begun);
}

/// What becomes of an attempt that does this.
GangEvent outcome_of(tune::detail::RunAttempt attempt) {
  ThreadLauncher launcher(std::move(attempt), [](const Launch&) { return tune::detail::Work(); });
  launcher.launch({.trial = 3});
  while (true) {
    const auto event = launcher.wait(Seconds(30));
    REQUIRE(event);
    if (event->kind != GangEvent::Kind::Placed) return *event;
  }
}

[[noreturn]] void die(int signal) {
  raise({.kind = Kind::ActorDied, .message = "process 7 was killed", .signal = signal});
}

}  // namespace

TEST_CASE("a lost connection, a lost node and a process that cannot start are the cluster's fault", "[tune][fault]") {
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

TEST_CASE("an attempt on a thread ends with the fault of what it threw", "[tune][fault]") {
  using tune::detail::Work;
  const auto killed_early = outcome_of([](const Work&, tune::detail::Attempt& attempt) {
    attempt.placed([] {});
    die(SIGKILL);
  });
  CHECK(killed_early.kind == GangEvent::Kind::Failed);
  CHECK(killed_early.fault == Fault::System);
  CHECK(killed_early.text == "process 7 was killed");

  const auto killed_late = outcome_of([](const Work&, tune::detail::Attempt& attempt) {
    attempt.placed([] {});
    attempt.begun();
    die(SIGKILL);
  });
  CHECK(killed_late.fault == Fault::Trial);

  const auto never_placed = outcome_of([](const Work&, tune::detail::Attempt&) {
    raise({.kind = Kind::Program, .message = "worker process 9 on node 1 did not start: signal 9"});
  });
  CHECK(never_placed.fault == Fault::System);

  const auto threw = outcome_of([](const Work&, tune::detail::Attempt& attempt) {
    attempt.begun();
    throw std::runtime_error("no data");
  });
  CHECK(threw.fault == Fault::Trial);
  CHECK(threw.text == "no data");

  const auto gone = outcome_of([](const Work&, tune::detail::Attempt& attempt) {
    attempt.placed([] {});
    throw tune::detail::CheckpointGone("the checkpoint x is gone");
  });
  CHECK(gone.fault == Fault::Checkpoint);
  CHECK(gone.text == "the checkpoint x is gone");
}
