#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

namespace troupe::scheduler {
namespace {

/// A need with its labels in order: itself, or a copy where they are not.
class Ordered {
 public:
  explicit Ordered(const Need& need) : need_{&need} {
    if (std::ranges::is_sorted(need.labels)) return;
    copy_ = need;
    std::ranges::sort(copy_->labels);
    need_ = &*copy_;
  }
  Ordered(const Ordered&) = delete;
  const Need& operator*() const { return *need_; }

 private:
  const Need* need_;
  std::optional<Need> copy_;
};

ShapeView single(Kind kind, const Ordered& need) {
  return {kind, *need, 1, (*need).spread ? Strategy::Spread : Strategy::Pack};
}

}  // namespace

void Cluster::on(const LeaseAsked& event) {
  accept(event, single(Kind::Lease, Ordered{event.need}), SubjectId{});
}

void Cluster::on(const ActorAsked& event) {
  if (requests_.contains(event.request)) return;
  const auto no = [&](Refused::Kind kind, std::string why) {
    emit(Refused{event.request, event.requester, kind, std::move(why)});
  };
  if (const auto same = actors_.find(event.actor); same != actors_.end()) {
    return no(Refused::Kind::Failed,
              fmt::format("actor {} is there already, made by process {} of job {}", event.actor,
                          same->second.requester, same->second.job));
  }
  const ActorName name(event.job, event.name);
  if (const auto holder = names_.find(name); holder != names_.end()) {
    emit(Refused{.request = event.request,
                 .requester = event.requester,
                 .kind = Refused::Kind::NameTaken,
                 .reason = fmt::format("the name '{}' is taken by actor {} of job {}", event.name,
                                       holder->second, actors_.at(holder->second).job),
                 .holder = holder->second});
    return;
  }
  auto* requester = accept(event, single(Kind::Actor, Ordered{event.need}), SubjectId{event.actor});
  if (requester == nullptr) return;
  actors_.emplace(event.actor, Actor{event.actor, event.request, event.job, event.requester,
                                     event.name, event.type});
  if (!event.name.empty()) names_.emplace(name, event.actor);
  requester->asked().actors.insert(event.actor);
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
    return no(Refused::Kind::Limit, fmt::format("{} ranks are more than the limit gang_size, {}",
                                                event.size, options_.gang_size));
  }
  const Ordered each{event.each};
  auto* requester =
      accept(event, {Kind::Gang, *each, event.size, event.strategy}, SubjectId{event.gang});
  if (requester == nullptr) return;
  requests_.find(event.request)->awaited = event.awaited;
  gangs_.emplace(event.gang, Gang{.id = event.gang,
                                  .request = event.request,
                                  .job = event.job,
                                  .requester = event.requester,
                                  .size = event.size});
  requester->asked().gangs.insert(event.gang);
}

template <class Asked>
Process* Cluster::accept(const Asked& event, const ShapeView& wanted, SubjectId subject) {
  if (requests_.contains(event.request)) return nullptr;
  auto* requester = find_process(event.requester);
  auto* line = requester == nullptr ? nullptr : Queue::line_of(*requester, wanted);
  auto* shape = line != nullptr ? line->shape : queue_.find(wanted);
  const bool known_possible = shape != nullptr && shape->possible;
  const auto outlook = known_possible ? Prospect{.possible = true} : prospect(wanted);
  if (auto no = objection(event.job, event.requester, requester, wanted, outlook)) {
    emit(Refused{event.request, event.requester, no->kind, std::move(no->reason)});
    return nullptr;
  }
  if (shape == nullptr) shape = &queue_.shape_for(wanted);
  auto& request = requests_.make(event.request);
  request.sequence = ++last_sequence_;
  request.requester = requester;
  request.shape = shape->key;
  request.subject = subject;
  request.since = now_;
  request.patient_until = outlook.until;
  shape->possible = outlook.possible;
  line != nullptr ? queue_.add(request, *line) : queue_.add(request, *shape);
  return requester;
}

std::optional<Cluster::Objection> Cluster::objection(JobId job, ProcessId id,
                                                     const Process* requester,
                                                     const ShapeView& shape,
                                                     const Prospect& outlook) const {
  if (requester == nullptr || requester->job->id != job ||
      requester->state == ProcessState::Stopping) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end() || found->second.ended) {
      return Objection{Refused::Kind::Failed, fmt::format("job {} is not running", job)};
    }
    return Objection{Refused::Kind::Failed,
                     fmt::format("process {}, which asks, is not running in job {}", id, job)};
  }
  if (requests_.size() >= options_.pending_requests) {
    return Objection{
        Refused::Kind::Limit,
        fmt::format("{} requests are pending, the limit pending_requests", requests_.size())};
  }
  if (outlook.possible) return std::nullopt;
  if (auto wrong = fault(shape.need)) return Objection{Refused::Kind::Impossible, *wrong};
  if (outlook.until > now_) return std::nullopt;
  return Objection{Refused::Kind::Impossible, impossible_because(shape)};
}

void Cluster::refuse(Request& request, Refused::Kind kind, std::string reason, ProcessId failed) {
  emit(Refused{request.id, request.requester->id, kind, std::move(reason), failed});
  drop(request);
}

void Cluster::drop(RequestId id) {
  if (auto* request = requests_.find(id)) drop(*request);
}

void Cluster::drop(Request& request) {
  const auto subject = request.subject;
  const auto kind = request.shape->kind;
  forget(request);
  if (kind == Kind::Lease && subject)
    end_lease(leases_.at(subject.lease()), "its request was withdrawn");
  if (kind == Kind::Actor) end_actor(subject.actor(), "its request was withdrawn");
  if (kind == Kind::Gang) end_gang(subject.gang(), "its request was withdrawn");
}

void Cluster::forget(Request& request) {
  if (request.reservation) nodes_.touch(reservations_.end(request));
  if (request.waiting()) queue_.remove(request);
  requests_.erase(request);  // and with it from the chain of its requester
}

void Cluster::on(const RequestWithdrawn& event) {
  auto* request = requests_.find(event.request);
  if (request != nullptr && request->requester->id == event.by) drop(*request);
}

void Cluster::on(const LeaseReturned& event) {
  auto* lease = leases_.find(event.lease);
  if (lease == nullptr || !lease->granted() || lease->requester->id != event.by) return;
  auto& process = *lease->process;
  fetch(&process);
  fetch(lease->node, Node::kHotPart);
  erase_lease(*lease);
  put_aside(process, "its lease was returned");
}

void Cluster::on(const ActorReleased& event) {
  const auto actor = actors_.find(event.actor);
  const auto* by = find_process(event.by);
  if (actor == actors_.end() || by == nullptr || by->job->id != actor->second.job) return;
  if (actor->second.stage != Stage::Placed) return drop(actor->second.request);
  end_actor(event.actor, event.why.empty() ? "its actor was released" : event.why);
}

void Cluster::on(const GangReleased& event) {
  const auto gang = gangs_.find(event.gang);
  if (gang == gangs_.end() || gang->second.requester != event.by) return;
  const bool placed = gang->second.stage == Stage::Placed || gang->second.stage == Stage::Broken;
  if (!placed) return drop(gang->second.request);
  end_gang(event.gang, event.why.empty() ? "its gang was released" : event.why);
}

}  // namespace troupe::scheduler
