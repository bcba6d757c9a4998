#include "store/memory/extents.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace troupe::store {
namespace {

/// The smallest that is large enough, of those the lowest.
template <class BySize>
auto tightest(const BySize& by_size, std::uint64_t bytes) {
  return by_size.lower_bound({bytes, 0});
}

Writers common(const Writers& a, const Writers& b) {
  Writers both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

}  // namespace

void add_writer(Writers& writers, ProcessId by) {
  const auto at = std::ranges::lower_bound(writers, by);
  if (at != writers.end() && *at == by) return;
  writers.insert(at, by);
  // Numbers are given in order, so the smallest belongs to the process that began first.
  if (writers.size() > kMostWriters)
    writers.erase(*writers.begin() == by ? writers.begin() + 1 : writers.begin());
}

Extents::Extents(std::uint64_t space_bytes) : space_(space_bytes) {
  assert(space_ > 0 && space_ % kPageBytes == 0);
  add_hole({0, space_});
}

std::optional<Extents::Taken> Extents::take_warm(std::uint64_t bytes, ProcessId by) {
  assert(bytes > 0 && bytes % kPageBytes == 0);
  if (const auto mine = warm_of_.find(by); mine != warm_of_.end()) {
    const auto found = tightest(mine->second, bytes);
    if (found != mine->second.end()) return cut(found->second, bytes);
  }
  if (const auto found = tightest(warm_by_size_, bytes); found != warm_by_size_.end())
    return cut(found->second, bytes);
  if (warm_bytes_ < bytes) return std::nullopt;
  const auto joined = join_neighbours(bytes);
  return joined ? std::optional(cut(*joined, bytes)) : std::nullopt;
}

/// Finds the tightest row of warm ranges without a gap and makes one range of it. -> its offset.
std::optional<std::uint64_t> Extents::join_neighbours(std::uint64_t bytes) {
  Extent best;
  for (auto at = warm_.begin(); at != warm_.end();) {
    Extent row{at->first, 0};
    for (; at != warm_.end() && at->first == row.end(); ++at) row.bytes += at->second.bytes;
    if (row.bytes >= bytes && (best.bytes == 0 || row.bytes < best.bytes)) best = row;
  }
  if (best.bytes == 0) return std::nullopt;

  auto joined = remove_warm(warm_.find(best.offset));
  while (joined.bytes < best.bytes) {
    const auto next = remove_warm(warm_.find(best.offset + joined.bytes));
    joined = {joined.bytes + next.bytes, std::max(joined.age, next.age),
              common(joined.writers, next.writers)};
  }
  add_warm(best, joined.age, std::move(joined.writers));
  return best.offset;
}

Extents::Taken Extents::cut(std::uint64_t offset, std::uint64_t bytes) {
  auto warm = remove_warm(warm_.find(offset));
  assert(warm.bytes >= bytes);
  if (warm.bytes > bytes) add_warm({offset + bytes, warm.bytes - bytes}, warm.age, warm.writers);
  return {{offset, bytes}, std::move(warm.writers)};
}

std::optional<Extent> Extents::take_hole(std::uint64_t bytes) {
  assert(bytes > 0 && bytes % kPageBytes == 0);
  const auto found = tightest(holes_by_size_, bytes);
  if (found == holes_by_size_.end()) return std::nullopt;
  const Extent hole{found->second, found->first};
  remove_hole(holes_.find(hole.offset));
  if (hole.bytes > bytes) add_hole({hole.offset + bytes, hole.bytes - bytes});
  return Extent{hole.offset, bytes};
}

void Extents::give_back(Extent extent, Writers writers) {
  assert(is_used(extent));
  add_warm(extent, ++last_age_, std::move(writers));
}

void Extents::give_back_hole(Extent extent) {
  assert(is_used(extent));
  add_hole(extent);
}

std::vector<Extent> Extents::release(std::uint64_t bytes) {
  std::vector<Extent> released;
  for (std::uint64_t sum = 0; sum < bytes && !warm_by_age_.empty();) {
    const auto offset = warm_by_age_.begin()->second;
    auto taken = cut(offset, std::min(warm_.at(offset).bytes, bytes - sum));
    sum += taken.extent.bytes;
    released.push_back(taken.extent);
    add_hole(taken.extent);
  }
  return released;
}

/// Joins it with neighbours that the same processes have written to.
void Extents::add_warm(Extent extent, std::uint64_t age, Writers writers) {
  const auto join = [&](WarmAt at) {
    const auto offset = at->first;
    const auto other = remove_warm(at);
    extent = {std::min(extent.offset, offset), extent.bytes + other.bytes};
    age = std::max(age, other.age);
  };
  auto next = warm_.lower_bound(extent.offset);
  if (next != warm_.end() && next->first == extent.end() && next->second.writers == writers)
    join(next);
  next = warm_.lower_bound(extent.offset);
  if (next != warm_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == extent.offset && before->second.writers == writers)
      join(before);
  }

  warm_bytes_ += extent.bytes;
  warm_by_size_.insert({extent.bytes, extent.offset});
  const bool is_new = warm_by_age_.emplace(age, extent.offset).second;
  assert(is_new);
  for (const auto writer : writers) warm_of_[writer].insert({extent.bytes, extent.offset});
  warm_.emplace(extent.offset, Warm{extent.bytes, age, std::move(writers)});
}

Extents::Warm Extents::remove_warm(WarmAt at) {
  assert(at != warm_.end());
  auto warm = std::move(at->second);
  const auto offset = at->first;
  warm_.erase(at);
  warm_bytes_ -= warm.bytes;
  warm_by_size_.erase({warm.bytes, offset});
  warm_by_age_.erase(warm.age);
  for (const auto writer : warm.writers) {
    const auto mine = warm_of_.find(writer);
    mine->second.erase({warm.bytes, offset});
    if (mine->second.empty()) warm_of_.erase(mine);
  }
  return warm;
}

void Extents::add_hole(Extent extent) {
  hole_bytes_ += extent.bytes;
  auto next = holes_.lower_bound(extent.offset);
  if (next != holes_.end() && next->first == extent.end()) {
    extent.bytes += next->second;
    holes_by_size_.erase({next->second, next->first});
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == extent.offset) {
      extent = {before->first, before->second + extent.bytes};
      holes_by_size_.erase({before->second, before->first});
      holes_.erase(before);
    }
  }
  holes_.emplace(extent.offset, extent.bytes);
  holes_by_size_.insert({extent.bytes, extent.offset});
}

void Extents::remove_hole(std::map<std::uint64_t, std::uint64_t>::iterator at) {
  hole_bytes_ -= at->second;
  holes_by_size_.erase({at->second, at->first});
  holes_.erase(at);
}

bool Extents::is_used(Extent extent) const {
  const auto overlaps = [&](const auto& ranges, auto bytes_of) {
    auto next = ranges.lower_bound(extent.end());
    if (next == ranges.begin()) return false;
    --next;
    return next->first + bytes_of(next->second) > extent.offset;
  };
  return extent.bytes > 0 && extent.end() <= space_ &&
         !overlaps(warm_, [](const Warm& warm) { return warm.bytes; }) &&
         !overlaps(holes_, [](std::uint64_t bytes) { return bytes; });
}

}  // namespace troupe::store
