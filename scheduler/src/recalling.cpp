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
  const auto& process = *lease.process;
  const auto& key = *shape.key;
  if (!process.held.resources.overlaps(key.need.resources)) return false;
  const bool others_wait = shape.lines.size() > 1 || !shape.lines.contains(lease.requester->id);
  if (!others_wait && *lease.shape == key) return false;
  const auto& node = *process.node;
  return matches(node.labels, key.need.labels) && node.idle.fits(key.need.resources);
}

/// Leases past their term go back, oldest first, no more of them than processes are waited for: the queue is by arrival
/// and whose lease was recalled asks again at its end, so requesters take turns.
void Cluster::recall_overdue() {
  auto coming = recalled_;
  for (auto* shape : queue_.shapes()) {
    const auto wanted = shape->size * shape->key->size;
    const auto covered = std::min(coming, wanted);
    coming -= covered;
    auto missing = wanted - covered;
    for (auto at = by_age_.begin(); at != by_age_.end() && missing > 0;) {
      auto& lease = *at++;
      if (lease.granted_at + options_.lease_term > now_) break;
      if (!competes(*shape, lease)) continue;
      recall(lease);
      --missing;
    }
  }
}

}  // namespace troupe::scheduler
