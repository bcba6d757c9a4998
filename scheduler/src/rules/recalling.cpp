#include <algorithm>

#include "cluster.hpp"
#include "policies/labels.hpp"

namespace troupe::scheduler {
namespace {

// So much more than another gets a job is to keep, or its turn is over, for its leases to be
// recalled: small differences even out as leases come and go.
constexpr double kWorthwhile = 5.0 / 4;

}  // namespace

void Cluster::recall(Lease& lease) {
  if (!ages_.recall(lease)) return;
  DominantShares::expect_back(lease.process->job->share, lease.process->held.resources);
  emit(LeaseRecalled{lease.id, lease.requester->id});
}

/// Whether returning the lease would bring one of the shape's requests forward and not just back to
/// its holder.
bool Cluster::competes(const Shape& shape, const Lease& lease) const {
  const auto& need = shape.key->need;
  if (!lease.process->held.resources.overlaps(need.resources)) return false;
  const bool others_wait = shape.lines.size() > 1 || !shape.lines.contains(lease.requester->id);
  if (!others_wait && *lease.shape == *shape.key) return false;
  // A node that holds what needs more is not looked at: its memory is cold.
  const auto& held = lease.shape->need;
  if (held.labels == need.labels && held.resources.covers(need.resources)) return true;
  return matches(lease.node->labels, need.labels) && lease.node->idle.fits(need.resources);
}

/// What leases that are recalled will give back counts for those that wait in their order; for whom
/// it is not enough, others give way, also before their terms. For a gang, whole nodes are drained
/// instead.
void Cluster::recall_for_those_behind() {
  if (jobs_.size() < 2 || ages_.empty()) return;
  Resources coming;
  Foremost foremost;
  for (const auto& [id, job] : jobs_) {
    coming += job.share.returning();
    if (job.recallable > 0) foremost.add(shares_, job.share);
  }
  for (auto* shape : queue_.shapes()) {
    if (shape->possible && shape->key->kind != Kind::Gang) recall_for(*shape, foremost, coming);
  }
}

/// One walk over the leases, from the oldest on, for one job after the other.
void Cluster::recall_for(Shape& shape, const Foremost& foremost, Resources& coming) {
  const auto& need = shape.key->need.resources;
  auto lease = ages_.begin();
  for (auto& lines : shape.order) {
    auto served = coming.count(need, lines.size);
    auto promised = times(need, static_cast<std::int64_t>(served));
    coming = coming.without(promised);
    Resources room;
    while (served < lines.size && lease != ages_.end()) {
      auto step = shares_.step_of(lines.of->share, promised, need);
      step.to *= kWorthwhile;
      if (!foremost.may_give_way(step)) break;
      while (lease != ages_.end() && !room.covers(need)) {
        auto& old = *lease++;
        const auto& holds = old.process->held.resources;
        if (!shares_.gives_way(old.requester->job->share, holds, step) || !competes(shape, old))
          continue;
        room += holds;
        recall(old);
      }
      if (!room.covers(need)) break;
      room -= need;
      promised += need;
      ++served;
    }
  }
}

/// Leases past their term go back, oldest first, no more of them than processes are waited for: the
/// queue is by arrival and whose lease was recalled asks again at its end, so requesters take
/// turns.
void Cluster::recall_overdue() {
  auto coming = ages_.recalled();
  for (auto* shape : queue_.shapes()) {
    if (!shape->possible) continue;
    const auto wanted = shape->size * shape->key->size;
    const auto covered = std::min(coming, wanted);
    coming -= covered;
    auto missing = wanted - covered;
    for (auto at = ages_.begin(); at != ages_.end() && missing > 0;) {
      auto& lease = *at++;
      if (at != ages_.end()) fetch(at->process);
      if (lease.granted_at + options_.lease_term > now_) break;
      if (!competes(*shape, lease)) continue;
      recall(lease);
      --missing;
    }
  }
}

}  // namespace troupe::scheduler
