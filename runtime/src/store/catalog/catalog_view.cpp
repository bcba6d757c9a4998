#include <algorithm>
#include <cstddef>
#include <vector>

#include "store/catalog/catalog.hpp"

/// What administrators see of single objects.
namespace troupe::store {

ObjectView Catalog::view_of(const Entry& entry) {
  const auto& [id, object] = entry;
  ObjectView view{.object = id,
                  .job = object.job,
                  .owner = object.owner,
                  .bytes = object.bytes,
                  .is_copy = object.is_copy()};
  using enum ObjectView::State;
  view.state = object.freed                      ? Freed
               : object.state == State::Waiting  ? Waiting
               : object.state == State::Creating ? Writing
               : object.state == State::Spilled  ? Disk
                                                 : Memory;
  for (const auto& pin : object.pins) {
    if (view.pinned_by.size() == ObjectView::kMostPins) break;
    view.pinned_by.push_back(is_node(pin.process) ? ProcessId() : pin.process);
  }
  return view;
}

std::vector<ObjectView> Catalog::largest(std::size_t most) const {
  std::vector<const Entry*> first(std::min(most, objects_.size()));
  std::vector<const Entry*> all;
  all.reserve(objects_.size());
  for (const auto& entry : objects_) all.push_back(&entry);
  std::ranges::partial_sort_copy(all, first, [](const Entry* one, const Entry* other) {
    if (one->second.bytes != other->second.bytes) return one->second.bytes > other->second.bytes;
    return one->first < other->first;
  });
  std::vector<ObjectView> views;
  views.reserve(first.size());
  for (const auto* entry : first) views.push_back(view_of(*entry));
  return views;
}

}  // namespace troupe::store
