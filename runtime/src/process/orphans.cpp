#include "process/orphans.hpp"

namespace troupe::process {

void Orphans::named(const std::vector<store::ObjectId>& objects) {
  for (const auto& object : objects) {
    if (ways_.may_answer(object.process)) {
      waiting_[object.process].push_back(object);
    } else {
      settle(object);
    }
  }
}

void Orphans::lost(ProcessId writer) {
  const auto waiting = waiting_.extract(writer);
  if (!waiting) return;
  for (const auto& object : waiting.mapped()) settle(object);
}

void Orphans::settle(store::ObjectId object) {
  if (!ways_.is_known(object)) ways_.free(object);
}

}  // namespace troupe::process
