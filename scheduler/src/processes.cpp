#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const ProcessReady& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state != ProcessState::Starting) return;
  process->state = process->role == Role::None ? ProcessState::Idle : ProcessState::InUse;
  became_ready(*process);
}

void Cluster::on(const ProcessExited& event) {
  const auto* process = find_process(event.process);
  if (process == nullptr) return;
  if (process->state == ProcessState::Driver) {
    return end_job(jobs_.at(process->job), fmt::format("its driver exited: {}", event.cause));
  }
  process_gone(event.process, event.cause, false);
}

void Cluster::process_gone(ProcessId id, const std::string& cause, bool with_node) {
  auto& process = processes_.at(id);
  auto& node = *nodes_.find(process.node);
  const auto job = process.job;
  process.state = ProcessState::Stopping;  // it is past being kept or stopped
  lose_role(process, cause, with_node);
  end_dependents(process, cause);
  end_wait(process);
  leave_spare(process);
  clear_role(process);
  nodes_.give(node, process.held);
  node.processes.erase(id);
  jobs_.at(job).processes.erase(id);
  processes_.erase(id);
  forget_job_if_over(job);
}

void Cluster::lose_role(Process& process, const std::string& cause, bool with_node) {
  if (process.role == Role::Lease) {
    const auto& lease = leases_.at(process.subject);
    if (!lease.granted) return start_failed(requests_.at(lease.request), process, cause, with_node);
    emit(LeaseLost{lease.id, process.id, cause, lease.requester});
    erase_lease(lease.id);
  } else if (process.role == Role::Actor) {
    const auto& actor = actors_.at(process.subject);
    if (actor.stage != Stage::Placed) return start_failed(requests_.at(actor.request), process, cause, with_node);
    emit(ActorLost{actor.id, process.id, cause, actor.requester});
    erase_actor(actor.id);
  } else if (process.role == Role::Rank) {
    auto& gang = gangs_.at(process.subject);
    if (gang.stage == Stage::Starting) return start_failed(requests_.at(gang.request), process, cause, with_node);
    emit(GangBroken{gang.id, process.rank, process.id, cause, gang.requester});
    gang.stage = Stage::Broken;
    gang.members[process.rank].process = 0;
    if (--gang.alive == 0) erase_gang(gang.id);
  }
}

void Cluster::start_failed(Request& request, const Process& process, const std::string& cause, bool with_node) {
  // A lost node is no fault of the request: it waits again, at its old place.
  if (with_node) return back_to_waiting(request);
  refuse(request, Refused::Kind::Failed,
         fmt::format("worker process {} on {} did not start: {}", process.id, node_text(process.node), cause));
}

void Cluster::stop(Process& process, std::string why) {
  if (process.state == ProcessState::Stopping || process.state == ProcessState::Driver) return;
  end_wait(process);
  leave_spare(process);
  clear_role(process);
  process.state = ProcessState::Stopping;
  doom(process, why);
  if (!nodes_.find(process.node)->lost) emit(StopProcess{process.id, process.node, std::move(why)});
}

void Cluster::put_aside(Process& process, const std::string& why) {
  auto& node = *nodes_.find(process.node);
  if (process.state == ProcessState::Stopping) return;
  if (process.sees_gpus || node.lost || jobs_.at(process.job).ended) return stop(process, why);
  end_wait(process);
  clear_role(process);
  nodes_.give(node, process.held);
  process.held = {};
  if (process.state == ProcessState::InUse) process.state = ProcessState::Idle;
  process.since = now_;
  idle_.emplace(now_, process.id);
  node.spare[process.job].push_back(process.id);
  ++node.spare_count;

  thin_out(node);
}

void Cluster::thin_out(const Node& node) {
  const auto cpus = static_cast<std::size_t>(node.idle.amounts().of(kCpu).units());
  const auto most = options_.idle_per_node != 0 ? options_.idle_per_node : std::max<std::size_t>(cpus, 2);
  if (node.spare_count <= most) return;
  Process* oldest = nullptr;
  for (const auto& [job, spares] : node.spare) {
    for (auto id : spares) {
      auto& spare = processes_.at(id);
      if (!spare.keeps_others() && (oldest == nullptr || spare.since < oldest->since)) oldest = &spare;
    }
  }
  if (oldest != nullptr) stop(*oldest, fmt::format("{} idle worker processes are the most its node keeps", most));
}

void Cluster::leave_spare(Process& process) {
  if (process.role != Role::None || idle_.erase({process.since, process.id}) == 0) return;
  auto& node = *nodes_.find(process.node);
  const auto spares = node.spare.find(process.job);
  std::erase(spares->second, process.id);
  if (spares->second.empty()) node.spare.erase(spares);
  --node.spare_count;
}

void Cluster::clear_role(Process& process) {
  if (process.role == Role::None) return;
  auto& node = *nodes_.find(process.node);
  if (process.role == Role::Lease) --node.lease_processes;
  process.role = Role::None;
  process.subject = 0;
  nodes_.touch(node);
}

void Cluster::doom(const Process& process, std::string cause) { doomed_.emplace_back(process.id, std::move(cause)); }

void Cluster::end_doomed() {
  while (!doomed_.empty()) {
    const auto [id, cause] = std::move(doomed_.back());
    doomed_.pop_back();
    if (auto* process = find_process(id)) end_dependents(*process, cause);
  }
}

void Cluster::end_dependents(Process& process, const std::string& cause) {
  for (auto request : in_order(process.requests)) drop(request);
  const auto why = fmt::format("process {}, which asked for it, is gone: {}", process.id, cause);
  for (auto lease : in_order(process.leases)) end_lease(lease, why);
  for (auto id : in_order(process.actors)) {
    const auto& actor = actors_.at(id);
    emit(ActorLost{id, actor.process, why, actor.requester});
    end_actor(id, why);
  }
  for (auto gang : in_order(process.gangs)) end_gang(gang, why);
}

void Cluster::end_lease(LeaseId id, const std::string& why) {
  const auto& lease = leases_.at(id);
  auto& process = processes_.at(lease.process);
  const bool granted = lease.granted;
  erase_lease(id);
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

void Cluster::erase_lease(LeaseId id) {
  const auto lease = leases_.find(id);
  if (auto* requester = find_process(lease->second.requester)) requester->leases.erase(id);
  if (auto* process = find_process(lease->second.process)) clear_role(*process);
  by_age_.erase({lease->second.granted_at, id});
  recalled_.erase(id);
  leases_.erase(lease);
}

void Cluster::erase_actor(ActorId id) {
  const auto actor = actors_.find(id);
  if (auto* requester = find_process(actor->second.requester)) requester->actors.erase(id);
  if (auto* process = find_process(actor->second.process)) clear_role(*process);
  if (!actor->second.name.empty()) names_.erase(actor->second.name);
  actors_.erase(actor);
}

void Cluster::erase_gang(GangId id) {
  const auto gang = gangs_.find(id);
  if (auto* requester = find_process(gang->second.requester)) requester->gangs.erase(id);
  for (const auto& member : gang->second.members) {
    if (auto* process = find_process(member.process)) clear_role(*process);
  }
  gangs_.erase(gang);
}

}  // namespace troupe::scheduler
