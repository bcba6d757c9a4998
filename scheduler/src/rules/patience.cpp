#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/labels.hpp"

namespace troupe::scheduler {

void Cluster::pass_time(bool is_tick) {
  stop_idle();
  run_in_debt();
  refuse_unmet();
  departed_.forget_before(now_ - options_.rejoin_patience);
  refuse_bounded();
  review_reservations(is_tick);
}

void Cluster::stop_idle() {
  for (auto* process : spares_.idle_since(now_ - options_.idle_time)) {
    if (!process->is_needed()) {
      stop(*process, "nobody has used it for the idle time");
      continue;
    }
    // Its end would be the end of what others use: it stays, and is looked at again later.
    spares_.renew(*process, now_);
  }
}

void Cluster::refuse_unmet() {
  for (auto* shape : queue_.shapes()) {
    if (shape->possible) continue;
    std::string because;
    for (auto* request : shape->everyone()) {
      if (request->patient_until > now_) continue;
      if (because.empty()) because = refusal_after_patience(*request->shape);
      refuse(*request, Refused::Kind::Impossible, because);
    }
  }
}

void Cluster::refuse_bounded() {
  for (auto* shape : queue_.shapes()) {
    if (!only_bounded(*shape->key)) {
      shape->bounded_since.reset();
      continue;
    }
    if (!shape->bounded_since) shape->bounded_since = now_;
    if (*shape->bounded_since + options_.limit_patience > now_) continue;
    for (auto* request : shape->everyone())
      refuse(*request, Refused::Kind::Limit, reason(*request));
  }
}

bool Cluster::only_bounded(const ShapeKey& shape) const {
  if (shape.kind != Kind::Lease || !bounds_.any_at_bound()) return false;
  bool found = false;
  nodes_.by_free().descending(shape.need.resources, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    found = bounds_.is_at_bound(node) && node.free.fits(shape.need.resources) &&
            matches(node.labels, shape.need.labels);
    return !found;
  });
  return found;
}

void Cluster::tell_who_waits() {
  for (auto* shape : queue_.shapes()) {
    for (const auto& lines : shape->order) {
      const auto& first = lines.first();
      auto& job = jobs_.at(lines.job);
      if (first.since + options_.notice_after > now_) continue;
      if (job.ended || (job.noticed && *job.noticed + options_.notice_pause > now_) ||
          !is_news(first))
        continue;
      job.noticed = now_;
      emit(StillWaits{job.id, job.driver, what(first), now_ - first.since,
                      reason(first) + held_by_actors(job)});
    }
  }
}

/// What a newcomer may not know: an actor that has nothing to do holds its CPU all the same.
std::string Cluster::held_by_actors(const Job& job) {
  const auto actors = std::ranges::count(job.processes, Role::Actor, &Process::role);
  if (actors == 0) return {};
  if (actors == 1)
    return "; an actor of this job keeps what it was given until its last handle goes";
  return fmt::format(
      "; {} actors of this job keep what they were given until their last handles go", actors);
}

bool Cluster::is_news(const Request& request) const {
  if (!request.line->shape->possible) return true;
  if (request.shape->kind == Kind::Actor) return true;
  const auto same = request.shape->kind == Kind::Lease ? Role::Lease : Role::Rank;
  return std::ranges::none_of(request.requester->job->processes,
                              [same](const Process& process) { return process.role == same; });
}

}  // namespace troupe::scheduler
