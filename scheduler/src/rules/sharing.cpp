#include <algorithm>
#include <cmath>

#include "cluster.hpp"

/// Who is served next among jobs, by dominant resource fairness (Ghodsi et al., NSDI 2011, section
/// 4): a job's dominant share is the largest part that it holds of any resource of the cluster,
/// divided by its weight, and whose is smallest comes first. Requests are indivisible and gangs are
/// not recalled, so that shares at one moment say little: jobs are ordered by their shares over the
/// last while, in ranks, so that jobs that are about equal keep the order of arrival.
namespace troupe::scheduler {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kRanksPerDoubling = 8;
constexpr int kLeastExponent = -20;

/// Eight from one share to its double, whatever the size of the cluster; less than a millionth of
/// it counts as nothing.
std::uint32_t rank_of(double share) {
  int exponent = 0;
  const auto fraction = std::frexp(share, &exponent);  // from 0.5 to 1
  if (share <= 0 || exponent <= kLeastExponent) return 0;
  return static_cast<std::uint32_t>((exponent - kLeastExponent + 2 * fraction - 1) *
                                    kRanksPerDoubling);
}

double part_of(Amount part, Amount all) {
  return all.is_zero() ? 0 : static_cast<double>(part.ticks()) / static_cast<double>(all.ticks());
}

}  // namespace

double Cluster::dominant_part(const Resources& held) const {
  double most = 0;
  for (const auto& [name, amount] : held.entries())
    most = std::max(most, part_of(amount, nodes_.total().of(name)));
  return most;
}

/// What it uses has changed, or what there is.
void Cluster::measure(Job& job) {
  job.share_time += job.share * static_cast<double>((now_ - job.share_since).count());
  job.share_since = now_;
  job.share = share_of(job, job.used);
}

void Cluster::measure_jobs() {
  part_of_a_cpu_tick_ = part_of(Amount::units(1.0 / Amount::kPerUnit), nodes_.total().cpu());
  for (auto& [id, job] : jobs_) measure(job);
}

/// Every job's share over the last while, and with it the order of the jobs.
void Cluster::review_shares() {
  const auto passed = static_cast<double>((now_ - shares_reviewed_at_).count());
  if (passed <= 0) return;
  shares_reviewed_at_ = now_;
  const auto news = 1 - std::exp(-passed / static_cast<double>(options_.share_window.count()));
  bool changed = false;
  for (auto& [id, job] : jobs_) {
    measure(job);
    job.average_share += (std::exchange(job.share_time, 0) / passed - job.average_share) * news;
    const auto rank = rank_of(job.average_share);
    if (rank != job.rank) {
      job.rank = rank;
      queue_.settle(job);
      changed = true;
    }
  }
  if (!changed) return;
  // What is kept for some may not be kept from others any more.
  nodes_.touch(reservations_.nodes());
}

/// Without what its leases that are recalled hold.
double Cluster::share_kept(const Job& job) const {
  return job.returning.empty() ? job.share : share_of(job, job.used.without(job.returning));
}

Cluster::Step Cluster::step_of(const Job& job, const Resources& coming,
                               const Resources& gets) const {
  auto held = job.used;
  held += coming;
  const auto from = share_of(job, held);
  held += gets;
  return {&job, from, share_of(job, held)};
}

/// Whether it has had more for a while than a job that is to take a step, and has more now.
bool Cluster::is_ahead(const Job& holder, const Step& step) const {
  return has_had_more(holder, *step.job) && share_kept(holder) > step.from + kRounding;
}

/// Whether a job is to give that back, as another waits: it is ahead, or has had about as much and
/// keeps no less than the other gets. So jobs of small requests have the same at each moment, and
/// where a request is so large that one of them must have more, they take turns.
bool Cluster::gives_way(const Job& holder, const Resources& gives, const Step& step) const {
  if (&holder == step.job || has_had_more(*step.job, holder)) return false;
  if (is_ahead(holder, step)) return true;
  if (share_kept(holder) + kRounding < step.to) return false;
  return share_of(holder, holder.used.without(holder.returning).without(gives)) + kRounding >=
         step.to;
}

/// Whether some job is to give way to the request.
bool Cluster::is_owed(const Request& request) const {
  if (jobs_.size() < 2) return false;
  const auto all = times(request.shape->need.resources, request.shape->size);
  const auto step = step_of(*request.requester->job, {}, all);
  return std::ranges::any_of(jobs_, [&](const auto& entry) {
    return gives_way(entry.second, all, step) && entry.second.used.overlaps(all);
  });
}

void Cluster::count_use(Process& process, bool more) {
  if (process.held.resources.empty()) return;
  auto& job = *process.job;
  more ? job.used += process.held.resources : job.used -= process.held.resources;
  measure(job);
}

/// Of what the process holds.
void Cluster::set_cpu(Process& process, Amount amount) {
  const bool returning = process.role == Role::Lease && leases_.at(process.subject).recalled;
  count_use(process, false);
  if (returning) process.job->returning -= process.held.resources;
  process.held.resources.set(kCpu, amount);
  if (returning) process.job->returning += process.held.resources;
  count_use(process, true);
}

}  // namespace troupe::scheduler
