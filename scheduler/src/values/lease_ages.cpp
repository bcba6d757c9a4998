#include "values/lease_ages.hpp"
#include "id_format.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace troupe::scheduler {

bool LeaseAges::recall(Lease& lease) {
  if (!lease.by_age.is_linked()) return false;
  lease.by_age.unlink();
  lease.recalled = true;
  ++recalled_;
  --lease.requester->job->recallable;
  return true;
}

std::optional<std::string> LeaseAges::broken_invariant(const std::vector<Lease*>& leases,
                                                       const std::vector<const Job*>& jobs) const {
  std::size_t recalled = 0;
  std::size_t listed = 0;
  std::map<const Job*, std::size_t> recallable;
  for (const auto* lease : leases) {
    const bool is_listed = lease->by_age.is_linked();
    if (is_listed != (lease->granted() && !lease->recalled))
      return fmt::format(
          "lease {}: it is among those that may be recalled, and may not be, or the other way "
          "round",
          lease->id);
    recalled += lease->recalled ? 1 : 0;
    if (!is_listed) continue;
    ++listed;
    ++recallable[lease->requester->job];
  }
  if (recalled != recalled_ || listed != by_age_.size()) return "leases are miscounted";
  if (!std::ranges::is_sorted(by_age_, {}, &Lease::granted_at))
    return "leases are not in the order of their age";
  for (const auto* job : jobs) {
    if (recallable[job] != job->recallable)
      return fmt::format("job {}: its leases that may be recalled are miscounted", job->id);
  }
  return std::nullopt;
}

}  // namespace troupe::scheduler
