#include <troupe/scheduler/snapshot.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {
namespace {

std::string use_of(const Process& process) {
  switch (process.role) {
    case Role::None:
      return {};
    case Role::Lease:
      return fmt::format("lease {}", process.subject.lease());
    case Role::Actor:
      return fmt::format("actor {}", process.subject.actor());
    case Role::Rank:
      return fmt::format("rank {} of gang {}", process.rank, process.subject.gang());
  }
  return {};
}

}  // namespace

std::string Cluster::what(const Request& request) const {
  const auto& shape = *request.shape;
  const auto need = to_string(shape.need);
  if (shape.kind == Kind::Lease) return fmt::format("lease of {}", need);
  if (shape.kind == Kind::Gang)
    return fmt::format("gang {} of {} times {} ({})", request.subject.gang(), shape.size, need,
                       to_string(shape.strategy));
  const auto& name = actors_.at(request.subject.actor()).name;
  return name.empty() ? fmt::format("actor {} of {}", request.subject.actor(), need)
                      : fmt::format("actor '{}' of {}", name, need);
}

std::vector<PendingView> Cluster::pending() const {
  std::vector<const Request*> order;
  for (const auto* request : requests_.all()) order.push_back(request);
  std::ranges::sort(order, {}, &Request::sequence);
  // One per shape, where nothing is special about the request.
  std::map<const ShapeKey*, std::string> reasons;
  std::vector<PendingView> views;
  for (const auto* request : order) {
    std::string why;
    if (request->waiting() && !request->reservation) {
      auto& shared = reasons[request->shape.get()];
      if (shared.empty()) shared = reason(*request);
      why = shared;
    } else {
      why = reason(*request);
    }
    views.push_back({request->id, what(*request), request->requester->job->id,
                     request->requester->id, request->since, why});
  }
  return views;
}

std::vector<NodeView> Cluster::nodes() const {
  std::vector<NodeView> views;
  for (const auto* node : nodes_.all()) {
    NodeView view{node->id,         node->incarnation,    node->name,
                  node->labels,     node->idle.amounts(), node->free.amounts(),
                  node->free.gpus()};
    view.processes = node->processes.size();
    for (const auto& process : node->processes) {
      if (process.state == ProcessState::Idle) ++view.idle;
      if (process.role == Role::Lease) ++view.leases;
      if (process.role == Role::Actor) ++view.actors;
      if (process.role == Role::Rank) ++view.ranks;
      if (process.loan.wait() == Wait::Blocked) ++view.blocked;
      if (process.role == Role::Actor || process.role == Role::Rank)
        view.reserved += process.held.resources;
    }
    view.state = node->claims.empty()
                     ? "ready"
                     : fmt::format("drained for request {}", node->claims.begin()->first);
    views.push_back(std::move(view));
  }
  return views;
}

ActorView Cluster::view(const Actor& actor) const {
  const auto* process = find_process(actor.process);
  return {actor.id,    actor.request, actor.name,
          actor.type,  actor.job,     actor.requester,
          actor.stage, actor.process, process == nullptr ? NodeId{} : process->node->id};
}

GangView Cluster::view(const Gang& gang) {
  return {gang.id, gang.request, gang.job, gang.requester, gang.size, gang.stage, gang.members};
}

ProcessView Cluster::view(const Process& process) const {
  const auto node = process.node == nullptr ? NodeId{} : process.node->id;
  return {
      process.id, node, process.job->id, process.state, use_of(process), process.held.resources};
}

std::vector<ActorView> Cluster::actors() const {
  std::vector<ActorView> views;
  for (const auto& [id, actor] : actors_) views.push_back(view(actor));
  return views;
}

std::vector<GangView> Cluster::gangs() const {
  std::vector<GangView> views;
  for (const auto& [id, gang] : gangs_) views.push_back(view(gang));
  return views;
}

std::vector<JobView> Cluster::jobs() const {
  std::map<JobId, JobView> views;
  for (const auto& [id, job] : jobs_)
    views[id] = {id, job.driver, job.share.weight(), job.ended,
                 job.processes.size() - (job.ended ? 0 : 1)};
  for (const auto* lease : leases_.all()) ++views[lease->process->job->id].leases;
  for (const auto& [id, actor] : actors_) ++views[actor.job].actors;
  for (const auto& [id, gang] : gangs_) ++views[gang.job].gangs;
  for (const auto* request : requests_.all()) ++views[request->requester->job->id].pending;
  std::vector<JobView> list;
  for (auto& [id, job] : views) list.push_back(job);
  return list;
}

std::vector<ProcessView> Cluster::processes() const {
  std::vector<ProcessView> views;
  for (const auto* process : processes_.all()) views.push_back(view(*process));
  std::ranges::sort(views, {}, &ProcessView::process);
  return views;
}

std::optional<ProcessView> Cluster::process(ProcessId id) const {
  const auto* found = find_process(id);
  return found == nullptr ? std::nullopt : std::optional{view(*found)};
}

std::optional<ActorView> Cluster::actor(ActorId id) const {
  const auto found = actors_.find(id);
  return found == actors_.end() ? std::nullopt : std::optional{view(found->second)};
}

std::optional<ActorView> Cluster::actor_named(JobId job, std::string_view name) const {
  const auto found = names_.find({job, name});
  return found == names_.end() ? std::nullopt : actor(found->second);
}

std::optional<GangView> Cluster::gang(GangId id) const {
  const auto found = gangs_.find(id);
  return found == gangs_.end() ? std::nullopt : std::optional{view(found->second)};
}

std::string_view to_string(ProcessState state) {
  switch (state) {
    case ProcessState::Driver:
      return "driver";
    case ProcessState::Starting:
      return "starting";
    case ProcessState::Idle:
      return "idle";
    case ProcessState::InUse:
      return "in use";
    case ProcessState::Stopping:
      return "stopping";
  }
  return "unknown";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::Pending:
      return "pending";
    case Stage::Starting:
      return "starting";
    case Stage::Placed:
      return "placed";
    case Stage::Broken:
      return "broken";
  }
  return "unknown";
}

}  // namespace troupe::scheduler
