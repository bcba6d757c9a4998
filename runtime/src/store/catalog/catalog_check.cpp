#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/catalog/catalog.hpp"
#include "store/catalog/require.hpp"

namespace troupe::store {

void Catalog::check() const {
  owners_.check();
  kept_.check();
  lru_.check();
  waiting_.check();
  shortage_.check();
  for (const auto& [number, process] : processes_) process.numbers.check();
  for (const auto& [id, object] : objects_) check_object(id, object);
  check_sums();
  check_memory();
}

/// Each part knows of the object what the object says of itself.
void Catalog::check_object(ObjectId id, const Object& object) const {
  const auto name = to_string(id);
  require(object.state != State::Creating || object.pins.of(object.writer) > 0,
          name + " has lost its writer");
  require(!object.freed || !object.pins.empty() || object.work != Work::None,
          name + " was freed and is still there");
  require(!object.in_lru || lru_.holds(id, object.in_lru), name + " is not where lru_ says");
  require(!object.in_waiting || waiting_.holds(id, object.in_waiting),
          name + " is not where waiting_ says");
  require(object.freed || owners_.owns(object.owner, id), name + " is not its owner's");
  pins_.check(id, object.pins);
  for (const auto& pin : object.pins)
    require(processes_.contains(pin.process), name + " has a pin of nobody");
  for (const auto& getter : object.getters)
    require(requests_.contains(getter), name + " is wanted by nobody");
}

/// No part knows more than the objects say.
void Catalog::check_sums() const {
  std::size_t in_lru = 0, in_waiting = 0, pins = 0, owned = 0;
  std::uint64_t leaving_bytes = 0, object_bytes = 0, pinned_bytes = 0;
  for (const auto& [id, object] : objects_) {
    in_lru += object.in_lru ? 1 : 0;
    in_waiting += object.in_waiting ? 1 : 0;
    owned += object.freed ? 0 : 1;
    pins += static_cast<std::size_t>(std::distance(object.pins.begin(), object.pins.end()));
    object_bytes += object.extent.bytes;
    if (object.work == Work::Write) leaving_bytes += object.extent.bytes;
    if (!object.pins.empty()) pinned_bytes += object.extent.bytes;
  }
  pins_.check_total(pins);
  require(owned == owners_.size(), "somebody owns what is gone");
  require(in_lru == lru_.size() && in_waiting == waiting_.size(), "a line holds what is gone");
  require(leaving_bytes == shortage_.leaving_bytes(),
          "bytes are on their way to the disk that nobody writes");
  require(object_bytes == object_bytes_ && pinned_bytes == pinned_bytes_,
          fmt::format("{} bytes in objects, and {} of these pinned, are counted as {} and {}",
                      object_bytes, pinned_bytes, object_bytes_, pinned_bytes_));
}

/// Every byte that an arena has handed out is one object's or one process's.
void Catalog::check_memory() const {
  std::map<JobId, std::vector<Extent>> extents;
  std::uint64_t kept_bytes = 0;
  for (const auto& [id, object] : objects_) {
    if (object.extent.bytes > 0) extents[object.job].push_back(object.extent);
  }
  for (const auto& [number, process] : processes_) {
    for (const auto& extent : kept_.of(number)) {
      extents[process.job].push_back(extent);
      kept_bytes += extent.bytes;
    }
  }
  require(kept_bytes == kept_.bytes(), "pages are kept by a process that is gone");
  for (auto& [job, ranges] : extents) {
    std::ranges::sort(ranges);
    std::uint64_t sum = 0, end = 0;
    for (const auto& range : ranges) {
      require(range.offset >= end,
              fmt::format("two extents of job {} overlap at {}", job, range.offset));
      end = range.end();
      sum += range.bytes;
    }
    require(sum == jobs_.at(job).extents.used(), fmt::format("job {} has lost bytes", job));
  }
  for (const auto& [job, state] : jobs_) {
    require(extents.contains(job) || state.extents.used() == 0,
            fmt::format("job {} has lost bytes", job));
  }
  require(in_arenas() <= options_.cap_bytes, "more memory than the cap");
}

}  // namespace troupe::store
