#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

/// Who waits for long is told so, and why.
namespace troupe::scheduler {

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
