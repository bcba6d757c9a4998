#include "store/catalog/owners.hpp"

#include <cassert>

#include <fmt/format.h>

#include "store/catalog/require.hpp"

namespace troupe::store {

void Owners::add(ObjectId object, ProcessId owner, ProcessId writer) {
  [[maybe_unused]] const bool is_new = owned_[owner].insert(object).second;
  assert(is_new);
  if (writer && writer != owner) for_others_[writer].emplace(object, owner);
}

void Owners::remove(ObjectId object, ProcessId owner, ProcessId writer) {
  const auto owned = owned_.find(owner);
  assert(owned != owned_.end() && owned->second.contains(object));
  owned->second.erase(object);
  if (owned->second.empty()) owned_.erase(owned);
  if (!writer || writer == owner) return;
  const auto left = for_others_.find(writer);
  if (left != for_others_.end()) left->second.erase(object);
}

std::vector<ObjectId> Owners::end(ProcessId owner) {
  ended_.add(owner.value());
  const auto owned = owned_.find(owner);
  if (owned == owned_.end()) return {};
  return {owned->second.begin(), owned->second.end()};
}

std::map<ProcessId, std::vector<ObjectId>> Owners::end_writer(ProcessId writer) {
  std::map<ProcessId, std::vector<ObjectId>> by_owner;
  const auto left = for_others_.extract(writer);
  if (!left) return by_owner;
  for (const auto& [object, owner] : left.mapped()) by_owner[owner].push_back(object);
  return by_owner;
}

bool Owners::owns(ProcessId owner, ObjectId object) const {
  const auto owned = owned_.find(owner);
  return owned != owned_.end() && owned->second.contains(object);
}

std::size_t Owners::size() const {
  std::size_t sum = 0;
  for (const auto& [owner, objects] : owned_) sum += objects.size();
  return sum;
}

void Owners::check() const {
  std::unordered_set<ObjectId> seen;
  for (const auto& [owner, objects] : owned_) {
    require(!objects.empty(), fmt::format("process {} is listed as an owner of nothing", owner));
    require(!has_ended(owner), fmt::format("process {} has ended and owns objects", owner));
    for (const auto& object : objects) {
      require(seen.insert(object).second,
              fmt::format("object {} has two owners", to_string(object)));
    }
  }
  for (const auto& [writer, left] : for_others_) {
    for (const auto& [object, owner] : left) {
      require(writer != owner && owns(owner, object),
              fmt::format("object {} of writer {} is not process {}'s", to_string(object), writer,
                          owner));
    }
  }
}

}  // namespace troupe::store
