#include <algorithm>

#include "cluster.hpp"

/// What each event means for the shares of the jobs, and the shares for who is served: see
/// DominantShares.
namespace troupe::scheduler {

void Cluster::measure_jobs() {
  shares_.set_total(nodes_.total());
  for (auto& [id, job] : jobs_) shares_.measure(job.share, now_);
}

/// Every job's share over the last while, and with it the order of the jobs.
void Cluster::review_shares() {
  const auto review = shares_.begin_review(now_);
  if (!review) return;
  bool changed = false;
  for (auto& [id, job] : jobs_) {
    if (!shares_.review(job.share, *review, now_)) continue;
    queue_.settle(job);
    changed = true;
  }
  // What is kept for some may not be kept from others any more.
  if (changed) nodes_.touch(reservations_.nodes());
}

/// Whose turn is overdue because of jobs that came after its request, and hold something.
void Cluster::review_turns() {
  auto latest = TimePoint::min();
  for (const auto& [id, job] : jobs_) {
    if (!job.share.used().empty()) latest = std::max(latest, job.started);
  }
  bool changed = false;
  for (auto* shape : queue_.shapes()) {
    for (auto& [id, lines] : shape->jobs) {  // in any order: each only finds its own place
      const auto& first = lines.first();
      const auto since = std::max(first.since, lines.served);
      const bool overdue = since + options_.turn_patience <= now_ && latest > first.since;
      if (queue_.set_overdue(lines, *shape, overdue)) changed = true;
    }
  }
  if (changed) nodes_.touch(reservations_.nodes());
}

bool Cluster::is_owed(const Request& request) const {
  if (jobs_.size() < 2) return false;
  const auto all = times(request.shape->need.resources, request.shape->size);
  const auto step = shares_.step_of(request.requester->job->share, {}, all);
  return std::ranges::any_of(jobs_, [&](const auto& entry) {
    const auto& share = entry.second.share;
    return shares_.gives_way(share, all, step) && share.used().overlaps(all);
  });
}

void Cluster::count_use(Process& process, bool more) {
  const auto& held = process.held.resources;
  if (held.empty()) return;
  auto& share = process.job->share;
  more ? shares_.use(share, held, now_) : shares_.stop_using(share, held, now_);
  if (process.role == Role::Lease) return;
  auto& job = *process.job;
  auto& cpus = process.role == Role::Actor ? job.cpus_of_actors : job.cpus_of_gangs;
  cpus = more ? cpus + held.cpu() : cpus - held.cpu();
}

/// Of what the process holds.
void Cluster::set_cpu(Process& process, Amount amount) {
  auto& share = process.job->share;
  const auto& held = process.held.resources;
  const bool returning =
      process.role == Role::Lease && leases_.at(process.subject.lease()).recalled;
  count_use(process, false);
  if (returning) DominantShares::stop_expecting(share, held);
  process.held.resources.set(kCpu, amount);
  if (returning) DominantShares::expect_back(share, held);
  count_use(process, true);
}

}  // namespace troupe::scheduler
