#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// Leases by when they were granted, and which of them are recalled: who has had the turn for long
/// gives it back first. The Cluster decides whose turn is over.
///
///   [its process starts] --grant--> [granted] --recall--> [recalled]
///
///   forget, from each state: the lease is returned or lost.
///
/// 1. A lease is in the order of age exactly while it is granted and not recalled.
/// 2. The order is by when leases were granted, of equal times by which came first.
/// 3. A job's `recallable` counts those of its leases that are in the order.
///
/// Cost: O(1).
class LeaseAges {
 public:
  /// Asserts that the lease has no request any more, and is not granted yet.
  void grant(Lease& lease, TimePoint now) {
    assert(lease.granted() && !lease.recalled);
    lease.granted_at = now;
    by_age_.push_back(lease);
    ++lease.requester->job->recallable;
  }
  /// -> false: the lease is not granted, or is recalled already. Iterators to others stay valid.
  bool recall(Lease& lease);
  void forget(Lease& lease) {
    if (lease.recalled) {
      lease.recalled = false;
      --recalled_;
    } else if (lease.by_age.is_linked()) {
      lease.by_age.unlink();
      --lease.requester->job->recallable;
    }
  }

  /// Those that may be recalled, the oldest first.
  auto begin() { return by_age_.begin(); }
  auto end() { return by_age_.end(); }
  bool empty() const { return by_age_.empty(); }
  std::size_t recalled() const { return recalled_; }  ///< which are neither returned nor lost yet

  /// `leases` and `jobs`: all of them. Cost: O(leases + jobs).
  std::optional<std::string> broken_invariant(const std::vector<Lease*>& leases,
                                              const std::vector<const Job*>& jobs) const;

 private:
  Chain<Lease, &Lease::by_age> by_age_;
  std::size_t recalled_ = 0;
};

}  // namespace troupe::scheduler
