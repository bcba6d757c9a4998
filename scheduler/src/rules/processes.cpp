#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const ProcessReady& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state != ProcessState::Starting) return;
  if (!is_of(*process, event.node, event.incarnation)) return;
  process->state = process->role == Role::None ? ProcessState::Idle : ProcessState::InUse;
  became_ready(*process);
}

void Cluster::on(const ProcessExited& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || !is_of(*process, event.node, event.incarnation)) return;
  if (process->state == ProcessState::Driver) {
    return end_job(*process->job, fmt::format("its driver exited: {}", event.cause));
  }
  process_gone(*process, event.cause, false);
}

/// A driver is of no node.
bool Cluster::is_of(const Process& process, NodeId node, Incarnation incarnation) {
  if (process.node == nullptr) return !node;
  return process.node->id == node && process.node->incarnation == incarnation;
}

void Cluster::on(const ValuesHeld& event) {
  auto* process = find_process(event.process);
  if (process != nullptr) process->values_held = event.any;
}

void Cluster::process_gone(Process& process, const std::string& cause, bool with_node) {
  const auto job = process.job->id;
  process.state = ProcessState::Stopping;  // it is past being kept or stopped
  lose_role(process, cause, with_node);
  end_dependents(process, cause);
  end_wait(process);
  spares_.remove(process);
  clear_role(process);
  if (!process.held.resources.empty()) nodes_.give(*process.node, process.held);
  processes_.erase(process);  // and with it from the chains of its node and its job
  forget_job_if_over(job);
}

void Cluster::lose_role(Process& process, const std::string& cause, bool with_node) {
  if (process.role == Role::Lease) {
    auto& lease = leases_.at(process.subject.lease());
    if (!lease.granted()) return start_failed(*lease.request, process, cause, with_node);
    emit(LeaseLost{lease.id, process.id, cause, lease.requester->id});
    erase_lease(lease);
  } else if (process.role == Role::Actor) {
    const auto& actor = actors_.at(process.subject.actor());
    if (actor.stage != Stage::Placed)
      return start_failed(requests_.at(actor.request), process, cause, with_node);
    emit(ActorLost{actor.id, process.id, cause, actor.requester});
    erase_actor(actor.id);
  } else if (process.role == Role::Rank) {
    auto& gang = gangs_.at(process.subject.gang());
    if (gang.stage == Stage::Starting)
      return start_failed(requests_.at(gang.request), process, cause, with_node);
    gang.stage = Stage::Broken;
    gang.members[process.rank].process = {};
    std::vector<ProcessId> others;
    for (const auto& member : gang.members) {
      if (member.process) others.push_back(member.process);
    }
    emit(GangBroken{gang.id, process.rank, process.id, cause, gang.requester, std::move(others)});
    if (--gang.alive == 0) erase_gang(gang.id);
  }
}

void Cluster::start_failed(Request& request, const Process& process, const std::string& cause,
                           bool with_node) {
  // A lost node is no fault of the request: it waits again, at its old place.
  if (with_node) return back_to_waiting(request);
  refuse(request, Refused::Kind::Failed,
         fmt::format("worker process {} on {} did not start: {}", process.id,
                     node_text(process.node->id), cause),
         process.id);
}

void Cluster::stop(Process& process, std::string why) {
  if (process.state == ProcessState::Stopping || process.state == ProcessState::Driver) return;
  end_wait(process);
  spares_.remove(process);
  clear_role(process);
  process.state = ProcessState::Stopping;
  if (process.keeps_others()) doom(process, why);
  if (!process.node->lost)
    emit(StopProcess{process.id, process.node->id, process.node->incarnation, std::move(why)});
}

void Cluster::put_aside(Process& process, std::string_view why) {
  auto& node = *process.node;
  if (process.state == ProcessState::Stopping) return;
  if (process.sees_gpus || node.lost || process.job->ended) {
    return stop(process, std::string{why});
  }
  end_wait(process);
  clear_role(process);
  nodes_.give(node, process.held);
  process.held.clear();
  if (process.state == ProcessState::InUse) process.state = ProcessState::Idle;
  spares_.add(process, now_);
  thin_out(node);
}

void Cluster::thin_out(const Node& node) {
  const auto most =
      options_.idle_per_node != 0 ? options_.idle_per_node : std::max<std::size_t>(node.cpus, 2);
  if (auto* process = Spares::surplus(node.spares, most)) stop(*process, "too many are idle");
}

void Cluster::clear_role(Process& process) {
  if (process.role == Role::None) return;
  auto& node = *process.node;
  count_use(process, false);
  if (process.role == Role::Lease) bounds_.remove(node);
  if (process.light) light_.remove(process);
  process.role = Role::None;
  process.subject = {};
  nodes_.touch(node);
}

void Cluster::doom(const Process& process, std::string cause) {
  doomed_.emplace_back(process.id, std::move(cause));
}

void Cluster::end_doomed() {
  while (!doomed_.empty()) {
    const auto [id, cause] = std::move(doomed_.back());
    doomed_.pop_back();
    if (auto* process = find_process(id)) end_dependents(*process, cause);
  }
}

void Cluster::end_dependents(Process& process, const std::string& cause) {
  if (!process.keeps_others()) return;
  auto& asked = process.asked();
  while (auto* request = asked.any_request()) drop(*request);
  const auto why = fmt::format("process {}, which asked for it, is gone: {}", process.id, cause);
  while (!asked.leases.empty()) end_lease(asked.leases.front(), why);
  for (auto id : std::set{asked.actors}) {
    const auto& actor = actors_.at(id);
    emit(ActorLost{id, actor.process, why, actor.requester});
    end_actor(id, why);
  }
  for (auto gang : std::set{asked.gangs}) end_gang(gang, why);
}

void Cluster::end_lease(Lease& lease, const std::string& why) {
  auto& process = *lease.process;
  const bool granted = lease.granted();
  erase_lease(lease);
  granted ? stop(process, why) : put_aside(process, why);
}

void Cluster::end_actor(ActorId id, const std::string& why) {
  const auto& actor = actors_.at(id);
  auto* process = find_process(actor.process);
  const bool placed = actor.stage == Stage::Placed;
  erase_actor(id);
  if (process != nullptr) placed ? stop(*process, why) : put_aside(*process, why);
}

void Cluster::end_gang(GangId id, const std::string& why) {
  const auto gang = gangs_.at(id);
  erase_gang(id);
  for (const auto& member : gang.members) {
    auto* process = find_process(member.process);
    if (process == nullptr) continue;
    gang.stage == Stage::Starting ? put_aside(*process, why) : stop(*process, why);
  }
}

void Cluster::erase_lease(Lease& lease) {
  auto& process = *lease.process;
  if (lease.recalled) DominantShares::stop_expecting(process.job->share, process.held.resources);
  ages_.forget(lease);
  leases_.erase(lease);  // and with it from the chain of its requester
  clear_role(process);
}

void Cluster::erase_actor(ActorId id) {
  const auto actor = actors_.find(id);
  if (auto* requester = find_process(actor->second.requester)) requester->asked().actors.erase(id);
  if (auto* process = find_process(actor->second.process)) clear_role(*process);
  if (!actor->second.name.empty()) names_.erase({actor->second.job, actor->second.name});
  actors_.erase(actor);
}

void Cluster::erase_gang(GangId id) {
  const auto gang = gangs_.find(id);
  if (auto* requester = find_process(gang->second.requester)) requester->asked().gangs.erase(id);
  for (const auto& member : gang->second.members) {
    if (auto* process = find_process(member.process)) clear_role(*process);
  }
  gangs_.erase(gang);
}

}  // namespace troupe::scheduler
