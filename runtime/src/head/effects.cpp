// What the scheduler decided, carried out: one function per effect.
#include <algorithm>

#include <fmt/format.h>

#include "calls/death_codec.hpp"
#include "head/control.hpp"
#include "wire/codec.hpp"

namespace troupe::head {

runtime::Death Control::death_or(ProcessId process, ProcessId told,
                                 const std::string& cause) const {
  if (const auto* ended = exit_records_.process(process)) return ended->death_for(told);
  return Failure{.kind = Failure::Kind::ProcessDied,
                 .message = fmt::format("process {}: {}", process, cause)};
}

void Control::carry_out(const scheduler::StartProcess& effect) {
  // A node that left in this turn of the loop will say nothing of the process, not even that it is
  // gone.
  const auto* node = routes_.node(effect.node);
  if (!node || node->incarnation != effect.incarnation) return;
  routes_.add_process(effect.process,
                      {.node = effect.node, .job = effect.job, .address = nullptr, .pid = 0});
  routes_.start_process(effect);
}

void Control::carry_out(const scheduler::StopProcess& effect) {
  if (!routes_.process(effect.process)) return;  // it is gone already, or its node is
  exit_records_.will_stop(effect.process, effect.why);
  routes_.stop_process(effect.node, effect.process, effect.why);
}

void Control::carry_out(const scheduler::LeaseGranted& effect) {
  const auto asked = close_request(effect.request);
  const auto* process = routes_.process(effect.process);
  if (!asked || !process || !process->address) {
    if (asked) refuse_for(*asked, effect.process);
    return apply(scheduler::LeaseReturned{.lease = effect.lease, .by = effect.requester});
  }
  routes_.tell(asked->asker, asked->id, [&](wire::HeadNotice::Builder tell) {
    auto grant = tell.initLease();
    grant.setLease(effect.lease.value());
    runtime::write_address(grant.initProcess(), *process->address);
  });
}

/// The process ended in the turn of the loop in which it was granted.
void Control::refuse_for(const Asked& asked, ProcessId process) {
  const auto* ended = exit_records_.process(process);
  refuse(asked, Failure::Kind::ProcessDied,
         ended ? ended->how.message
               : fmt::format("process {} ended before it could be used", process));
}

void Control::carry_out(const scheduler::ActorPlaced& effect) {
  const auto asked = close_request(effect.request);
  const auto* process = routes_.process(effect.process);
  if (!asked || !process || !process->address) {
    return apply(scheduler::ActorReleased{
        .actor = effect.actor, .by = effect.requester, .why = "nobody waits for it any more"});
  }
  const auto* asker = routes_.process(asked->asker);
  const auto actor = state_.actor(effect.actor);
  if (!asker || !actor) return refuse_for(*asked, effect.process);
  routes_.tell(asked->asker, asked->id, [&](wire::HeadNotice::Builder tell) {
    write_grant(tell.initActor(), *actor, *process, asker->job);
  });
  std::erase_if(searches_, [this](const Search& search) { return answer_search(search); });
}

void Control::carry_out(const scheduler::GangPlaced& effect) {
  const auto asked = close_request(effect.request);
  const auto gone = std::ranges::find_if(effect.members, [this](const scheduler::Member& member) {
    const auto* process = routes_.process(member.process);
    return !process || !process->address;
  });
  if (!asked || gone != effect.members.end()) {
    if (asked) refuse_for(*asked, gone->process);
    return apply(scheduler::GangReleased{
        .gang = effect.gang, .by = effect.requester, .why = "nobody waits for it any more"});
  }
  routes_.tell(asked->asker, asked->id, [&](wire::HeadNotice::Builder tell) {
    auto grant = tell.initGang();
    grant.setGang(effect.gang.value());
    auto members = grant.initMembers(static_cast<unsigned>(effect.members.size()));
    for (unsigned rank = 0; rank < members.size(); ++rank) {
      const auto& member = effect.members[rank];
      runtime::write_address(members[rank].initProcess(),
                             *routes_.process(member.process)->address);
      members[rank].setLocalRank(member.local_rank);
      members[rank].setNodeRank(member.node_rank);
      auto gpus = members[rank].initGpus(static_cast<unsigned>(member.gpus.size()));
      for (unsigned i = 0; i < gpus.size(); ++i) gpus.set(i, member.gpus[i]);
    }
  });
}

void Control::carry_out(const scheduler::Refused& effect) {
  const auto asked = close_request(effect.request);
  if (!asked) return;
  using Kind = scheduler::Refused::Kind;
  const auto* failed = exit_records_.process(effect.failed);
  const auto kind = effect.kind == Kind::Impossible  ? Failure::Kind::Impossible
                    : effect.kind == Kind::NameTaken ? Failure::Kind::NameTaken
                    : effect.kind != Kind::Failed    ? Failure::Kind::Refused
                    : failed                         ? failed->how.kind
                                                     : Failure::Kind::Program;
  refuse(*asked, kind, effect.reason + about_holder(asked->asker, effect.holder));
}

/// Of a name that is taken: who has it, and how it is got at. Empty where nothing is known of it.
std::string Control::about_holder(ProcessId asker, scheduler::ActorId holder) const {
  const auto actor = holder ? state_.actor(holder) : std::nullopt;
  const auto* process = routes_.process(asker);
  if (!actor || !process) return {};
  constexpr auto kAdvice =
      ": find() returns it, and find_or_spawn() makes one only where there is none";
  if (detached_.contains(actor->job))
    return fmt::format(", which is detached and outlives its program{}", kAdvice);
  if (actor->job == process->job) return fmt::format(", which is this program's own{}", kAdvice);
  const auto job = jobs_.find(actor->job);
  if (job == jobs_.end()) return {};
  return fmt::format(
      " ('{}', pid {}), and as it is not detached no other job can call it: choose another name, "
      "or "
      "wait for the end of that job",
      job->second.name, job->second.pid);
}

void Control::carry_out(const scheduler::LeaseRecalled& effect) {
  routes_.tell(effect.requester, {}, [&](wire::HeadNotice::Builder tell) {
    tell.setLeaseRecalled(effect.lease.value());
  });
}

void Control::carry_out(const scheduler::LeaseLost& effect) {
  routes_.tell(effect.requester, {}, [&](wire::HeadNotice::Builder tell) {
    auto lost = tell.initLeaseLost();
    lost.setId(effect.lease.value());
    runtime::write_death(tell, lost.initFailure(),
                         death_or(effect.process, effect.requester, effect.cause));
  });
}

void Control::carry_out(const scheduler::ActorLost& effect) {
  const auto death = death_or(effect.process, effect.requester, effect.cause);
  exit_records_.actor_ended(effect.actor, effect.process, death.how);
  note_if_lost(effect.actor, death.how.message);
  routes_.tell(effect.requester, {}, [&](wire::HeadNotice::Builder tell) {
    auto lost = tell.initActorLost();
    lost.setId(effect.actor.value());
    runtime::write_death(tell, lost.initFailure(), death);
  });
}

void Control::carry_out(const scheduler::GangBroken& effect) {
  const auto tell_of_it = [&](ProcessId to) {
    routes_.tell(to, {}, [&](wire::HeadNotice::Builder tell) {
      auto broken = tell.initGangBroken();
      broken.setGang(effect.gang.value());
      broken.setRank(effect.rank);
      runtime::write_death(tell, broken.initFailure(), death_or(effect.process, to, effect.cause));
    });
  };
  tell_of_it(effect.requester);
  for (const auto process : effect.others) tell_of_it(process);
}

void Control::carry_out(const scheduler::ProcessResumed& effect) {
  auto ask = resuming_.extract(effect.process);
  if (ask.empty()) return;
  routes_.tell(effect.process, ask.mapped(),
               [](wire::HeadNotice::Builder tell) { tell.setResumed(); });
}

void Control::carry_out(const scheduler::StillWaits& effect) {
  // Of a detached actor's job, who makes it: if that is a driver, for others say nothing to people.
  const auto detached = std::ranges::find_if(
      detached_, [&](const auto& entry) { return entry.second.in_its_name == effect.driver; });
  auto told = detached == detached_.end() ? effect.driver : detached->second.creator;
  if (const auto* process = routes_.process(told); process && process->node) return;
  routes_.tell(told, {}, [&](wire::HeadNotice::Builder tell) {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(effect.waited).count();
    tell.setStillWaits(
        fmt::format("{} has waited for {} s: {}", effect.what, waited, effect.reason));
  });
}

}  // namespace troupe::head
