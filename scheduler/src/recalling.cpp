#include <algorithm>

#include "cluster.hpp"
#include "policies/labels.hpp"

namespace troupe::scheduler {

void Cluster::recall(Lease& lease) {
  if (lease.recalled || !lease.granted()) return;
  lease.recalled = true;
  lease.by_age.unlink();
  ++recalled_;
  emit(LeaseRecalled{lease.id, lease.requester->id});
}

/// Whether returning the lease would bring one of the shape's requests forward and not just back to its holder.
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

/// Leases past their term go back, oldest first, no more of them than processes are waited for: the queue is by arrival
/// and whose lease was recalled asks again at its end, so requesters take turns.
void Cluster::recall_overdue() {
  auto coming = recalled_;
  for (auto* shape : queue_.shapes()) {
    if (!shape->possible) continue;
    const auto wanted = shape->size * shape->key->size;
    const auto covered = std::min(coming, wanted);
    coming -= covered;
    auto missing = wanted - covered;
    for (auto at = by_age_.begin(); at != by_age_.end() && missing > 0;) {
      auto& lease = *at++;
      if (at != by_age_.end()) fetch(at->process);
      if (lease.granted_at + options_.lease_term > now_) break;
      if (!competes(*shape, lease)) continue;
      recall(lease);
      --missing;
    }
  }
}

}  // namespace troupe::scheduler
