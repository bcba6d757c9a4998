#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/place.hpp"

/// What holds after every event. Each check answers with the first thing that is wrong.
namespace troupe::scheduler {
namespace {

using Wrong = std::optional<std::string>;

Wrong check_amounts(const Node& node, const std::unordered_map<ProcessId, Process>& processes) {
  Capacity taken = node.free;
  for (const auto& gpu : node.free.gpus()) {
    if (gpu.ticks() < 0 || gpu > Amount::whole(1))
      return fmt::format("node {}: a GPU is {} free", node.id, gpu.units());
  }
  for (const auto& [name, amount] : node.free.amounts()) {
    if (amount.ticks() < 0) return fmt::format("node {}: {} {} is free", node.id, name, amount.units());
  }
  for (auto id : node.processes) taken.give(processes.at(id).held);
  if (taken.amounts() != node.idle.amounts() || taken.gpus() != node.idle.gpus()) {
    return fmt::format("node {}: free and taken add up to {}, and it has {}", node.id, to_string(taken.amounts()),
                       to_string(node.idle.amounts()));
  }
  Amount gpus;
  for (const auto& gpu : node.free.gpus()) gpus = gpus + gpu;
  if (gpus != node.free.amounts().of(kGpu))
    return fmt::format("node {}: the GPUs do not add up to what is free", node.id);
  return std::nullopt;
}

Wrong check_counts(const Node& node, const std::unordered_map<ProcessId, Process>& processes) {
  std::size_t spares = 0;
  std::size_t leases = 0;
  for (auto id : node.processes) {
    const auto& process = processes.at(id);
    if (process.role == Role::Lease) ++leases;
    if (process.role == Role::None && process.state != ProcessState::Stopping) ++spares;
  }
  std::size_t listed = 0;
  for (const auto& [job, ids] : node.spare) {
    listed += ids.size();
    if (ids.empty()) return fmt::format("node {}: an empty list of spares", node.id);
  }
  if (spares != node.spare_count || listed != spares) return fmt::format("node {}: spares are miscounted", node.id);
  if (leases != node.lease_processes) return fmt::format("node {}: lease processes are miscounted", node.id);
  return std::nullopt;
}

Wrong check_wait(const Process& process, const Node& node) {
  const auto in = [&](const auto& line) { return std::ranges::count(line, process.id) == 1; };
  if (in(node.resuming) != (process.wait == Wait::Resuming) || in(node.owing) != (process.wait == Wait::Owing)) {
    return fmt::format("process {}: it waits for its CPU in no line, or in the wrong one", process.id);
  }
  if (process.wait == Wait::Runs && !process.lent.is_zero()) {
    return fmt::format("process {}: it runs and has lent its CPU", process.id);
  }
  if (process.wait != Wait::Runs && process.state != ProcessState::InUse) {
    return fmt::format("process {}: it is not in use and waits", process.id);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Cluster::broken_invariant() const {
  for (const auto& [id, node] : nodes_.all()) {
    if (auto wrong = check_amounts(node, processes_)) return wrong;
    if (auto wrong = check_counts(node, processes_)) return wrong;
    for (const auto& [request, claim] : node.claims) {
      if (!requests_.contains(request)) return fmt::format("node {}: kept for request {}, which is gone", id, request);
    }
  }
  for (const auto& [id, process] : processes_) {
    if (auto wrong = broken(process)) return wrong;
  }
  for (const auto& [id, gang] : gangs_) {
    if (auto wrong = broken(gang)) return wrong;
  }
  for (const auto& [id, lease] : leases_) {
    const auto* process = find_process(lease.process);
    const auto* requester = find_process(lease.requester);
    if (process == nullptr || process->role != Role::Lease || process->subject != id) {
      return fmt::format("lease {}: no process", id);
    }
    if (requester == nullptr || !requester->leases.contains(id)) return fmt::format("lease {}: no holder", id);
    if (!lease.granted && !requests_.contains(lease.request)) return fmt::format("lease {}: no request", id);
  }
  for (const auto& [id, actor] : actors_) {
    const auto* process = find_process(actor.process);
    const bool placed = actor.stage == Stage::Placed;
    if (placed == requests_.contains(actor.request)) return fmt::format("actor {}: its request is lost, or left", id);
    if (actor.stage != Stage::Pending &&
        (process == nullptr || process->role != Role::Actor || process->subject != id)) {
      return fmt::format("actor {}: no process", id);
    }
    if (!actor.name.empty() && (!names_.contains(actor.name) || names_.at(actor.name) != id)) {
      return fmt::format("actor {}: its name is not its own", id);
    }
  }
  return broken_requests();
}

std::optional<std::string> Cluster::broken(const Process& process) const {
  const auto job = jobs_.find(process.job);
  if (job == jobs_.end() || !job->second.processes.contains(process.id)) {
    return fmt::format("process {}: no job", process.id);
  }
  if (process.state == ProcessState::Driver) return std::nullopt;
  const auto* node = nodes_.find(process.node);
  if (node == nullptr || !node->processes.contains(process.id)) return fmt::format("process {}: no node", process.id);
  const bool has_user = (process.role == Role::Lease && leases_.contains(process.subject)) ||
                        (process.role == Role::Actor && actors_.contains(process.subject)) ||
                        (process.role == Role::Rank && gangs_.contains(process.subject));
  const bool may_be_unused = process.state != ProcessState::InUse && process.role == Role::None;
  if (!has_user && !may_be_unused) return fmt::format("process {}: in use by nobody", process.id);
  if (process.state == ProcessState::Idle && (has_user || !process.held.resources.empty())) {
    return fmt::format("process {}: it is idle and holds something", process.id);
  }
  if (process.state == ProcessState::Stopping && process.keeps_others()) {
    return fmt::format("process {}: it is stopping, and what it asked for is not", process.id);
  }
  return check_wait(process, *node);
}

std::optional<std::string> Cluster::broken(const Gang& gang) const {
  const bool pending = gang.stage == Stage::Pending || gang.stage == Stage::Starting;
  if (pending != requests_.contains(gang.request)) return fmt::format("gang {}: its request is lost, or left", gang.id);
  if (gang.members.size() != (gang.stage == Stage::Pending ? 0 : gang.size)) {
    return fmt::format("gang {}: half placed", gang.id);
  }
  std::size_t dead = 0;
  for (const auto& member : gang.members) {
    const auto* process = find_process(member.process);
    const bool there = process != nullptr && process->role == Role::Rank && process->subject == gang.id;
    if (!there) ++dead;
  }
  if (dead > 0 && gang.stage != Stage::Broken) return fmt::format("gang {}: {} ranks are missing", gang.id, dead);
  if (gang.stage == Stage::Broken && (dead == 0 || gang.alive != gang.size - dead || gang.alive == 0)) {
    return fmt::format("gang {}: its dead are miscounted", gang.id);
  }
  return std::nullopt;
}

std::optional<std::string> Cluster::broken_requests() const {
  std::size_t waiting = 0;
  for (const auto& [key, shape] : queue_.by_key()) {
    waiting += shape.waiting.size();
    for (const auto& [sequence, id] : shape.waiting) {
      const auto request = requests_.find(id);
      if (request == requests_.end() || !request->second.waiting || request->second.sequence != sequence) {
        return fmt::format("request {}: queued, and not waiting", id);
      }
    }
  }
  for (const auto& [id, request] : requests_) {
    if (request.waiting && waiting-- == 0) return fmt::format("request {}: waiting, and not queued", id);
    const auto* requester = find_process(request.requester);
    if (requester == nullptr || !requester->requests.contains(id)) return fmt::format("request {}: nobody asks", id);
    if (request.reservation.has_value() != reserving_.contains({request.sequence, id})) {
      return fmt::format("request {}: its reservation is lost, or left", id);
    }
  }
  for (const auto& view : pending()) {
    if (view.reason.empty()) return fmt::format("request {}: no reason", view.request);
  }
  return forgotten_request();
}

/// One that waits although it could be placed: what became free did not wake it.
std::optional<std::string> Cluster::forgotten_request() const {
  for (const auto& [key, shape] : queue_.by_key()) {
    scratch_.clear();
    const auto candidates = shortlist(key, false);
    if (!shape.possible || candidates.empty()) continue;
    if (std::holds_alternative<Chosen>(scheduler::place(key.ask(), candidates))) {
      return fmt::format("request {}: it waits although it fits", shape.waiting.begin()->second);
    }
  }
  return std::nullopt;
}

}  // namespace troupe::scheduler
