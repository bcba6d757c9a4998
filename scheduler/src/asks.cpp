#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

namespace troupe::scheduler {
namespace {

Need sorted(Need need) {
  std::ranges::sort(need.labels);
  return need;
}

ShapeKey single(Kind kind, const Need& need) {
  return {kind, sorted(need), 1, need.spread ? Strategy::Spread : Strategy::Pack};
}

}  // namespace

void Cluster::on(const LeaseAsked& event) { accept(event, single(Kind::Lease, event.need), 0); }

void Cluster::on(const ActorAsked& event) {
  if (requests_.contains(event.request)) return;
  const auto no = [&](Refused::Kind kind, std::string why) {
    emit(Refused{event.request, event.requester, kind, std::move(why)});
  };
  if (const auto same = actors_.find(event.actor); same != actors_.end()) {
    return no(Refused::Kind::Failed, fmt::format("actor {} is there already, made by process {} of job {}", event.actor,
                                                 same->second.requester, same->second.job));
  }
  if (const auto holder = names_.find(event.name); holder != names_.end()) {
    return no(Refused::Kind::NameTaken, fmt::format("the name '{}' is taken by actor {} of job {}", event.name,
                                                    holder->second, actors_.at(holder->second).job));
  }
  if (!accept(event, single(Kind::Actor, event.need), event.actor)) return;
  actors_.emplace(event.actor, Actor{event.actor, event.request, event.job, event.requester, event.name});
  if (!event.name.empty()) names_.emplace(event.name, event.actor);
  processes_.at(event.requester).actors.insert(event.actor);
}

void Cluster::on(const GangAsked& event) {
  if (requests_.contains(event.request)) return;
  const auto no = [&](Refused::Kind kind, std::string why) {
    emit(Refused{event.request, event.requester, kind, std::move(why)});
  };
  if (gangs_.contains(event.gang)) {
    return no(Refused::Kind::Failed, fmt::format("gang {} is there already", event.gang));
  }
  if (event.size == 0) return no(Refused::Kind::Impossible, "a gang has at least one rank");
  if (event.size > options_.gang_size) {
    return no(Refused::Kind::Limit,
              fmt::format("{} ranks are more than the limit gang_size, {}", event.size, options_.gang_size));
  }
  if (!accept(event, {Kind::Gang, sorted(event.each), event.size, event.strategy}, event.gang)) return;
  gangs_.emplace(event.gang, Gang{event.gang, event.request, event.job, event.requester, event.size});
  processes_.at(event.requester).gangs.insert(event.gang);
}

template <class Asked>
bool Cluster::accept(const Asked& event, ShapeKey key, std::uint64_t subject) {
  if (requests_.contains(event.request)) return false;
  if (auto no = objection(event.job, event.requester, key)) {
    emit(Refused{event.request, event.requester, no->kind, std::move(no->reason)});
    return false;
  }
  Request request;
  request.id = event.request;
  request.sequence = ++last_sequence_;
  request.job = event.job;
  request.requester = event.requester;
  request.shape = queue_.intern(std::move(key));
  request.subject = subject;
  request.since = now_;
  if (nodes_.empty()) request.patient_until = now_ + options_.join_patience;
  queue_.add(request).possible = !nodes_.empty();
  processes_.at(event.requester).requests.insert(event.request);
  requests_.emplace(event.request, std::move(request));
  return true;
}

std::optional<Cluster::Objection> Cluster::objection(JobId job, ProcessId requester, const ShapeKey& shape) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.ended) {
    return Objection{Refused::Kind::Failed, fmt::format("job {} is not running", job)};
  }
  const auto* process = find_process(requester);
  if (process == nullptr || process->job != job || process->state == ProcessState::Stopping) {
    return Objection{Refused::Kind::Failed,
                     fmt::format("process {}, which asks, is not running in job {}", requester, job)};
  }
  if (requests_.size() >= options_.pending_requests) {
    return Objection{Refused::Kind::Limit,
                     fmt::format("{} requests are pending, the limit pending_requests", requests_.size())};
  }
  if (auto wrong = fault(shape.need)) return Objection{Refused::Kind::Impossible, *wrong};
  if (nodes_.empty()) return std::nullopt;
  const auto* known = queue_.find(shape);
  if (known != nullptr ? known->possible : possible(shape)) return std::nullopt;
  return Objection{Refused::Kind::Impossible, impossible_because(shape)};
}

bool Cluster::possible(const ShapeKey& shape) const {
  const auto& each = shape.need.resources;
  const bool one_node = shape.strategy == Strategy::StrictPack;
  const auto needed = one_node ? shape.size : std::size_t{1};
  std::size_t found = 0;
  nodes_.by_total().descending(each, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    if (node.lost || !matches(node.labels, shape.need.labels)) return true;
    const auto slots = node.idle.slots(each, shape.size);
    if (slots < needed) return true;
    found += one_node ? shape.size : shape.strategy == Strategy::StrictSpread ? 1 : slots;
    return found < shape.size;
  });
  return found >= shape.size;
}

std::string Cluster::impossible_because(const ShapeKey& shape) const {
  if (nodes_.empty()) return "no node has joined yet";
  const auto judged = scheduler::place(shape.ask(), nodes_.candidates());
  const auto* impossible = std::get_if<Impossible>(&judged);
  return impossible != nullptr ? impossible->because : "the node that could hold it is being lost";
}

void Cluster::refuse(const Request& request, Refused::Kind kind, std::string reason) {
  emit(Refused{request.id, request.requester, kind, std::move(reason)});
  drop(request.id);
}

void Cluster::drop(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  auto& request = found->second;
  const auto subject = request.subject;
  const auto kind = request.shape->kind;
  forget(request);
  if (kind == Kind::Lease && subject != 0) end_lease(subject, "its request was withdrawn");
  if (kind == Kind::Actor) end_actor(subject, "its request was withdrawn");
  if (kind == Kind::Gang) end_gang(subject, "its request was withdrawn");
}

void Cluster::forget(Request& request) {
  if (request.reservation) {
    lift(request);
    reserving_.erase({request.sequence, request.id});
  }
  if (request.waiting) queue_.remove(request);
  if (auto* requester = find_process(request.requester)) requester->requests.erase(request.id);
  requests_.erase(request.id);
}

void Cluster::on(const RequestWithdrawn& event) { drop(event.request); }

void Cluster::on(const LeaseReturned& event) {
  if (const auto lease = leases_.find(event.lease); lease != leases_.end() && lease->second.granted) {
    auto& process = processes_.at(lease->second.process);
    erase_lease(event.lease);
    put_aside(process, "its lease was returned");
  }
}

void Cluster::on(const ActorReleased& event) {
  const auto actor = actors_.find(event.actor);
  if (actor == actors_.end()) return;
  if (actor->second.stage != Stage::Placed) return drop(actor->second.request);
  end_actor(event.actor, event.why.empty() ? "its actor was released" : event.why);
}

void Cluster::on(const GangReleased& event) {
  const auto gang = gangs_.find(event.gang);
  if (gang == gangs_.end()) return;
  const bool placed = gang->second.stage == Stage::Placed || gang->second.stage == Stage::Broken;
  if (!placed) return drop(gang->second.request);
  end_gang(event.gang, event.why.empty() ? "its gang was released" : event.why);
}

}  // namespace troupe::scheduler
