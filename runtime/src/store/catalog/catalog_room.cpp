#include <algorithm>
#include <cassert>
#include <string>

#include <fmt/format.h>

#include "store/catalog/catalog.hpp"

namespace troupe::store {
namespace {

/// An object without bytes has a page too: an extent is never empty.
std::uint64_t pages_of(std::uint64_t bytes) { return std::max(kPageBytes, whole_pages(bytes)); }

}  // namespace

std::uint64_t Catalog::in_arenas() const {
  std::uint64_t sum = 0;
  for (const auto& [job, state] : jobs_) sum += state.extents.used() + state.extents.warm();
  return sum;
}

std::uint64_t Catalog::warm_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [job, state] : jobs_) sum += state.extents.warm();
  return sum;
}

/// Nobody waits, mostly, and there is memory: then the object does not stand in the line at all.
void Catalog::place_or_wait(Entry& entry, Effects& out) {
  const bool is_placed = waiting_.empty() && place(entry, out);
  if (!is_placed) waiting_.join(entry.first, entry.second.in_waiting);
  serve(out);
}

/// Places what waits, in order, and starts what is needed for the first that has no place.
void Catalog::serve(Effects& out) {
  while (!waiting_.empty()) {
    auto* entry = find(waiting_.front());
    if (place(*entry, out)) {
      waiting_.leave(entry->second.in_waiting);
      continue;
    }
    const auto room = make_room(*entry, out);
    if (room == Room::UnderWay) return;
    if (room == Room::Found) continue;
    if (!shortage_.disk_failure()) return;
    auto refusal = no_room(entry->second.bytes);
    const auto& failure = *shortage_.disk_failure();
    if (failure.kind == Refusal::Kind::DiskFull) refusal.kind = failure.kind;
    refusal.message += "; " + failure.message;
    refuse(*entry, refusal, out);
  }
  end_shortage();
}

bool Catalog::place(Entry& entry, Effects& out) {
  auto& [id, object] = entry;
  const auto size = pages_of(object.bytes);
  const auto by = object.state == State::Waiting ? object.writer : ProcessId();
  auto& extents = jobs_.at(object.job).extents;
  if (auto taken = extents.take_warm(size, by)) {
    set_extent(object, taken->extent);
    object.writers = std::move(taken->writers);
    granted(entry, std::ranges::binary_search(object.writers, by), out);
    return true;
  }
  const auto total = in_arenas();
  if (total + size > limit_bytes_) {
    const auto excess = total + size - limit_bytes_;
    if (warm_bytes() < excess) return false;
    auto left = excess;
    for (auto& [job, state] : jobs_) {
      const auto released = std::min(left, state.extents.warm());
      release(job, state.extents, released, out);
      left -= released;
    }
  }
  const auto hole = take_hole(extents, object.job, size, out);
  if (!hole) return false;
  set_extent(object, *hole);
  object.work = Work::Commit;
  out.push_back(Commit{object.job, id, *hole});
  return true;
}

/// Where the holes are too small, the warm ranges between them become holes as well.
std::optional<Extent> Catalog::take_hole(Extents& extents, JobId job, std::uint64_t bytes,
                                         Effects& out) {
  if (const auto hole = extents.take_hole(bytes)) return hole;
  release(job, extents, extents.warm(), out);
  return extents.take_hole(bytes);
}

void Catalog::release(JobId job, Extents& extents, std::uint64_t bytes, Effects& out) {
  for (const auto& extent : extents.release(bytes)) out.push_back(Punch{job, extent});
}

/// The object has its memory.
void Catalog::granted(Entry& entry, bool warm, Effects& out) {
  auto& [id, object] = entry;
  ++moves_;
  if (object.state == State::Spilled) {
    object.work = Work::Read;
    ++disk_work_;
    out.push_back(ReadBack{object.job, id, object.extent, object.bytes});
    return;
  }
  assert(object.state == State::Waiting);
  object.state = State::Creating;
  add_writer(object.writers, object.writer);
  pin(entry, object.writer);
  requests_.erase({object.writer, object.create_request});
  out.push_back(Created{object.writer, object.create_request, id, object.extent, warm});
}

/// What was begun for the object, by a thread of the service, is done.
Catalog::Entry& Catalog::end_work(ObjectId id, Work work) {
  auto& entry = *find(id);
  assert(entry.second.work == work);
  entry.second.work = Work::None;
  return entry;
}

Effects Catalog::committed(ObjectId id, const std::optional<Refusal>& failure) {
  Effects out;
  auto& entry = end_work(id, Work::Commit);
  auto& object = entry.second;
  if (failure) {
    jobs_.at(object.job).extents.give_back_hole(take_extent(object));
    limit_bytes_ = std::min(limit_bytes_, in_arenas());
    limited_because_ = failure;
  }
  if (object.freed) {
    remove_if_idle(entry, out);
  } else if (!failure) {
    granted(entry, false, out);
  } else if (object.impatient) {
    refuse(entry, no_room(object.bytes), out);
  } else if (object.state == State::Waiting || !object.getters.empty()) {
    waiting_.join_front(id, object.in_waiting);
  }
  serve(out);
  return out;
}

// ---- what leaves memory -------------------------------------------------------------------------

Catalog::Room Catalog::make_room(Entry& entry, Effects& out) {
  const auto needed = in_arenas() - warm_bytes() + pages_of(entry.second.bytes);
  if (needed <= limit_bytes_) return Room::Stuck;  // no range of addresses is large enough
  if (recall(out) || shortage_.awaits_answers()) return Room::UnderWay;
  const auto missing = needed - limit_bytes_;
  while (shortage_.leaving_bytes() < missing) {
    const auto room = evict_one(out);
    if (room == Room::Found) return room;
    if (room == Room::Stuck) break;
  }
  return shortage_.leaving_bytes() > 0 ? Room::UnderWay : Room::Stuck;
}

/// Once in a shortage: nobody keeps anything, or holds it without use, as long as that lasts. ->
/// whether somebody was asked.
bool Catalog::recall(Effects& out) {
  const auto round = shortage_.open_round();
  if (!round) return false;
  for (const auto& [number, process] : processes_) {
    if (is_node(number) || (!kept_.has_any(number) && !pins_.has_any(number))) continue;
    shortage_.on_recall(number);
    out.push_back(Recall{number, *round, std::nullopt});
  }
  return shortage_.awaits_answers();
}

/// Found: it has left. UnderWay: it is being written. Stuck: nothing can leave.
Catalog::Room Catalog::evict_one(Effects& out) {
  if (lru_.empty() || shortage_.is_disk_given_up()) return Room::Stuck;
  auto& entry = *find(lru_.front());
  auto& [id, object] = entry;
  if (object.is_copy()) {
    free(entry, "its memory was needed", out);
    return Room::Found;
  }
  if (object.on_disk) {
    leave_memory(entry);
    return Room::Found;
  }
  object.work = Work::Write;
  ++disk_work_;
  shortage_.on_write_began(object.extent.bytes);
  update_lru(entry);
  out.push_back(WriteOut{object.job, id, object.extent, object.bytes});
  return Room::UnderWay;
}

void Catalog::leave_memory(Entry& entry) {
  auto& object = entry.second;
  assert(object.state == State::Sealed && object.on_disk && object.pins.empty() &&
         object.work == Work::None);
  return_extent(object);
  object.state = State::Spilled;
  ++spilled_;
  update_lru(entry);
}

void Catalog::set_extent(Object& object, Extent extent) {
  assert(object.extent.bytes == 0 && object.pins.empty());
  object.extent = extent;
  object_bytes_ += extent.bytes;
}

Extent Catalog::take_extent(Object& object) {
  assert(object.pins.empty());
  object_bytes_ -= object.extent.bytes;
  return std::exchange(object.extent, {});
}

void Catalog::return_extent(Object& object) {
  if (object.extent.bytes == 0) return;
  jobs_.at(object.job).extents.give_back(take_extent(object), std::exchange(object.writers, {}));
}

Effects Catalog::written(ObjectId id, const std::optional<Refusal>& failure) {
  Effects out;
  auto& entry = end_work(id, Work::Write);
  auto& object = entry.second;
  --disk_work_;
  shortage_.on_write_ended(object.extent.bytes);
  if (!failure) {
    ++moves_;
    object.on_disk = true;
    disk_bytes_ += object.bytes;
  } else if (!object.freed) {
    object.unwritable = true;
    shortage_.on_disk_failed(id, *failure);
  }
  update_lru(entry);
  // If it was wanted in the meantime, or memory is not, it stays; its file makes the next time
  // free.
  if (object.on_disk && object.in_lru && !waiting_.empty()) leave_memory(entry);
  remove_if_idle(entry, out);
  serve(out);
  return out;
}

Effects Catalog::restored(ObjectId id, const std::optional<Refusal>& failure) {
  Effects out;
  auto& entry = end_work(id, Work::Read);
  auto& object = entry.second;
  --disk_work_;
  if (!failure) {
    ++moves_;
    object.state = State::Sealed;
    ++restored_;
    answer_getters(entry, out);
  } else {
    return_extent(object);
    decline_getters(entry, *failure, out);
  }
  update_lru(entry);
  remove_if_idle(entry, out);
  serve(out);
  return out;
}

/// Those that may leave memory, and only those, are in lru_.
void Catalog::update_lru(Entry& entry) {
  auto& [id, object] = entry;
  const bool may_leave = object.state == State::Sealed && object.pins.empty() &&
                         object.work == Work::None && !object.freed && !object.unwritable;
  if (may_leave == static_cast<bool>(object.in_lru)) return;
  if (may_leave) {
    lru_.join(id, object.in_lru);
  } else {
    lru_.leave(object.in_lru);
  }
}

void Catalog::end_shortage() {
  for (const auto& id : shortage_.end()) {
    if (auto* entry = find(id)) {
      entry->second.unwritable = false;
      update_lru(*entry);
    }
  }
}

// ---- refusals -----------------------------------------------------------------------------------

void Catalog::refuse(Entry& entry, const Refusal& refusal, Effects& out) {
  auto& [id, object] = entry;
  waiting_.leave(object.in_waiting);
  if (object.state != State::Waiting || object.is_copy()) decline_getters(entry, refusal, out);
  if (object.state != State::Waiting) return;
  if (requests_.erase({object.writer, object.create_request}) > 0) {
    out.push_back(Declined{object.writer, object.create_request, refusal});
  }
  processes_.at(object.writer).writing.erase(id);
  object.state = State::Sealed;  // which nobody can see: it is freed now
  free(entry, "there was no memory for it", out);
}

Refusal Catalog::no_room(std::uint64_t bytes) const {
  const auto now = statistics();
  auto text = fmt::format(
      "no memory for {}: the object store of this node may use {}, and {} are taken: objects in "
      "use {}, objects that could go to the disk {}, kept by processes {}",
      format_bytes(bytes), format_bytes(limit_bytes_),
      format_bytes(now.object_bytes + now.kept_bytes), format_bytes(now.pinned_bytes),
      format_bytes(now.object_bytes - now.pinned_bytes), format_bytes(now.kept_bytes));
  if (!limited_because_) return {Refusal::Kind::Full, std::move(text)};
  text += fmt::format("; its own cap is {}, but {}", format_bytes(options_.cap_bytes),
                      limited_because_->message);
  return {Refusal::Kind::MemoryFull, std::move(text)};
}

Statistics Catalog::statistics() const {
  Statistics sum;
  sum.cap_bytes = options_.cap_bytes;
  sum.limit_bytes = limit_bytes_;
  sum.object_bytes = object_bytes_;
  sum.pinned_bytes = pinned_bytes_;
  sum.kept_bytes = kept_.bytes();
  sum.warm_bytes = warm_bytes();
  sum.disk_bytes = disk_bytes_;
  sum.objects = objects_.size();
  sum.waiting = requests_.size();
  sum.spilled = spilled_;
  sum.restored = restored_;
  return sum;
}

}  // namespace troupe::store
