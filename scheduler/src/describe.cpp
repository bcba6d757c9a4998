#include <fmt/format.h>
#include <fmt/ranges.h>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/events.hpp>

#include "id_format.hpp"

namespace troupe::scheduler {
namespace {

std::string text(const NodeJoined& e) {
  return fmt::format("node joined: '{}' (node {}), incarnation {}, {}, {} GPUs", e.name, e.node,
                     e.incarnation, to_string(e.total), e.gpus);
}
std::string text(const NodeLost& e) {
  return fmt::format("node lost: node {}, incarnation {}: {}", e.node, e.incarnation, e.reason);
}
std::string text(const JobStarted& e) {
  return fmt::format("job started: {} with driver {}", e.job, e.driver);
}
std::string text(const JobEnded& e) { return fmt::format("job ended: {}: {}", e.job, e.reason); }
std::string text(const LeaseAsked& e) {
  return fmt::format("lease asked: request {} of process {} in job {}, {}", e.request, e.requester,
                     e.job, to_string(e.need));
}
std::string text(const LeaseReturned& e) {
  return fmt::format("lease returned: {} by process {}", e.lease, e.by);
}
std::string text(const ActorAsked& e) {
  return fmt::format("actor asked: request {} of process {} in job {}, actor {} '{}', {}",
                     e.request, e.requester, e.job, e.actor, e.name, to_string(e.need));
}
std::string text(const ActorReleased& e) {
  return fmt::format("actor released: {} by process {}: {}", e.actor, e.by, e.why);
}
std::string text(const GangAsked& e) {
  return fmt::format("gang asked: request {} of process {} in job {}, gang {} of {} times {} ({})",
                     e.request, e.requester, e.job, e.gang, e.size, to_string(e.each),
                     to_string(e.strategy));
}
std::string text(const GangReleased& e) {
  return fmt::format("gang released: {} by process {}: {}", e.gang, e.by, e.why);
}
std::string text(const ProcessReady& e) {
  return fmt::format("process ready: {} on node {}, incarnation {}", e.process, e.node,
                     e.incarnation);
}
std::string text(const ProcessExited& e) {
  return fmt::format("process exited: {} on node {}, incarnation {}: {}", e.process, e.node,
                     e.incarnation, e.cause);
}
std::string text(const ProcessBlocked& e) { return fmt::format("process blocked: {}", e.process); }
std::string text(const ProcessUnblocked& e) {
  return fmt::format("process unblocked: {}", e.process);
}
std::string text(const ResourcesReturned& e) {
  return fmt::format("resources returned: by process {}", e.process);
}
std::string text(const RequestWithdrawn& e) {
  return fmt::format("request withdrawn: {} by process {}", e.request, e.by);
}
std::string text(const ValuesHeld& e) {
  return fmt::format("values of process {} are held: {}", e.process, e.any);
}
std::string text(const Tick&) { return "tick"; }

std::string_view name_of(Refused::Kind kind) {
  switch (kind) {
    case Refused::Kind::Impossible:
      return "impossible";
    case Refused::Kind::Failed:
      return "failed";
    case Refused::Kind::NameTaken:
      return "name taken";
    case Refused::Kind::Limit:
      return "limit";
  }
  return "unknown";
}

std::string text(const StartProcess& e) {
  return fmt::format("start process {} on node {} for job {}, GPUs [{}]", e.process, e.node, e.job,
                     fmt::join(e.gpus, ", "));
}
std::string text(const StopProcess& e) {
  return fmt::format("stop process {} on node {}: {}", e.process, e.node, e.why);
}
std::string text(const LeaseGranted& e) {
  return fmt::format("lease {} granted to process {} for request {}: process {}", e.lease,
                     e.requester, e.request, e.process);
}
std::string text(const ActorPlaced& e) {
  return fmt::format("actor {} placed for request {}: process {}", e.actor, e.request, e.process);
}
std::string text(const GangPlaced& e) {
  std::string members;
  for (const auto& member : e.members) {
    members +=
        fmt::format("{}{} on node {}", members.empty() ? "" : ", ", member.process, member.node);
  }
  return fmt::format("gang {} placed for request {}: processes {}", e.gang, e.request, members);
}
std::string text(const Refused& e) {
  return fmt::format("request {} refused ({}): {}", e.request, name_of(e.kind), e.reason);
}
std::string text(const LeaseRecalled& e) {
  return fmt::format("lease {} recalled from process {}", e.lease, e.requester);
}
std::string text(const LeaseLost& e) {
  return fmt::format("lease {} of process {} lost with process {}: {}", e.lease, e.requester,
                     e.process, e.cause);
}
std::string text(const ActorLost& e) {
  return fmt::format("actor {} lost with process {}: {}", e.actor, e.process, e.cause);
}
std::string text(const GangBroken& e) {
  return fmt::format("gang {} broken: rank {} lost with process {}: {}", e.gang, e.rank, e.process,
                     e.cause);
}
std::string text(const ProcessResumed& e) { return fmt::format("process {} resumed", e.process); }
std::string text(const StillWaits& e) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(e.waited).count();
  return fmt::format("job {} told that {} has waited for {} s: {}", e.job, e.what, seconds,
                     e.reason);
}

}  // namespace

std::string to_string(const Event& event) {
  return std::visit([](const auto& e) { return text(e); }, event);
}

std::string to_string(const Effect& effect) {
  return std::visit([](const auto& e) { return text(e); }, effect);
}

}  // namespace troupe::scheduler
