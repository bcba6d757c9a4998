#include "store/catalog/object_line.hpp"

#include <cassert>
#include <set>

#include "store/catalog/require.hpp"

namespace troupe::store {

void ObjectLine::join(ObjectId object, Place& place) {
  assert(!place);
  place.number_ = after_++;
  objects_.emplace_hint(objects_.end(), place.number_, object);
}

void ObjectLine::join_front(ObjectId object, Place& place) {
  assert(!place);
  place.number_ = before_--;
  objects_.emplace_hint(objects_.begin(), place.number_, object);
}

void ObjectLine::leave(Place& place) {
  if (!place) return;
  const auto left = objects_.erase(place.number_);
  assert(left == 1);
  static_cast<void>(left);
  place = {};
}

bool ObjectLine::holds(ObjectId object, Place place) const {
  const auto found = objects_.find(place.number_);
  return found != objects_.end() && found->second == object;
}

void ObjectLine::check() const {
  std::set<ObjectId> seen;
  for (const auto& [number, object] : objects_) {
    require(before_ < number && number < after_,
            "a place of a line that was never given holds " + to_string(object));
    require(seen.insert(object).second, to_string(object) + " stands in a line twice");
  }
}

}  // namespace troupe::store
