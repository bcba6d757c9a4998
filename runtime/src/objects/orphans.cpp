#include "objects/orphans.hpp"

namespace troupe::runtime {

void Orphans::named(const std::vector<store::ObjectId>& objects, const AddressPtr& at) {
  for (const auto& object : objects) {
    store::Wanted place{.object = object, .at = at};
    if (callbacks_.may_answer(object.process)) {
      waiting_[object.process].push_back(std::move(place));
    } else {
      settle(place);
    }
  }
}

void Orphans::lost(ProcessId writer) {
  const auto waiting = waiting_.extract(writer);
  if (!waiting) return;
  for (const auto& place : waiting.mapped()) settle(place);
}

void Orphans::settle(const store::Wanted& place) {
  if (!callbacks_.is_known(place.object)) callbacks_.free(place);
}

}  // namespace troupe::runtime
