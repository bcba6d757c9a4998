#include "run/fault.hpp"

#include <csignal>

#include <troupe/tune/detail/checkpoints.hpp>

#include "text/cause.hpp"

namespace troupe::tune {
namespace {

bool was_killed(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

/// Whether the end of the cluster may look like this to one attempt.
bool may_be_its_end(const Failure& failure, Fault fault) {
  return failure.kind == Failure::Kind::ObjectLost || fault == Fault::System ||
         was_killed(failure.signal);
}

/// What was thrown and in which process, without the type and the function: "FUNCTION, rank 0 of 2,
/// pid 7 on node 1" is where it was.
std::string plain_text(const Failure& failure) {
  const auto place = failure.where.find(", ");
  return place == std::string::npos
             ? failure.message
             : failure.message + " (" + failure.where.substr(place + 2) + ")";
}

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
      if (failure.exit_code == kLostWithNode || (!begun && was_killed(failure.signal)))
        return Fault::System;
      return Fault::Trial;
    default:
      return Fault::Trial;
  }
}

GangEvent failure_event(TrialId trial, const std::exception_ptr& thrown, bool begun) {
  GangEvent event{.kind = GangEvent::Kind::Failed, .trial = trial};
  try {
    std::rethrow_exception(thrown);
  } catch (const detail::CheckpointGone& gone) {
    event.text = gone.what();
    event.fault = Fault::Checkpoint;
  } catch (const Impossible& impossible) {
    event.kind = GangEvent::Kind::Impossible;
    event.text = impossible.what();
  } catch (const Error& error) {
    event.text = error.what();
    if (error.failure().kind == Failure::Kind::Task) {
      event.cause = error.failure().type + ": " + cause_without_report(error.failure().message);
      event.plain_text = plain_text(error.failure());
    }
    event.fault = fault_of(error.failure(), begun);
    event.lost = may_be_its_end(error.failure(), event.fault);
  } catch (const std::exception& error) {
    event.text = error.what();
  } catch (...) {
    event.text = "it threw something that is no std::exception";
  }
  return event;
}

GangEvent failure_event_here(TrialId trial, const std::exception_ptr& thrown) {
  auto event = failure_event(trial, thrown, true);
  if (event.fault == Fault::Checkpoint) return event;
  event.kind = GangEvent::Kind::Failed;
  event.fault = Fault::Trial;
  event.lost = false;
  return event;
}

GangEvent ended_by_search(TrialId trial) {
  return {.kind = GangEvent::Kind::Failed,
          .trial = trial,
          .text = "the search ended its processes",
          .fault = Fault::Ended};
}

}  // namespace troupe::tune
