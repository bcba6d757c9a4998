#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "store/catalog/catalog.hpp"

namespace troupe::store {

// ---- free ---------------------------------------------------------------------------------------

Effects Catalog::free(ProcessId by, ObjectId object, bool keep) {
  auto* entry = find(object);
  if (entry == nullptr && may_come(object)) {  // what is too much lies until its owner ends
    processes_.at(object.process).numbers.on_early_free(object.number, options_.most_freed_early);
  }
  if (entry == nullptr || (by && by != entry->second.owner && by != entry->second.writer))
    return {};
  Effects out;
  const bool gives_up = by == entry->second.writer && entry->second.state == State::Creating;
  if (gives_up) {
    processes_.at(by).writing.erase(object);
    entry->second.state = State::Sealed;  // which nobody can see: it is freed below
    unpin(*entry, by, 1);
  }
  if (keep) try_keep(*entry, by, out);
  free(*entry, "it was freed", out);
  serve(out);
  return out;
}

bool Catalog::try_keep(Entry& entry, ProcessId by, Effects& out) {
  auto& object = entry.second;
  const auto process = processes_.find(by);
  if (process == processes_.end() || process->second.job != object.job || !waiting_.empty())
    return false;
  const bool is_at_rest =
      object.state == State::Sealed && object.work == Work::None && object.pins.empty();
  if (!is_at_rest || object.freed || !std::ranges::binary_search(object.writers, by)) return false;
  if (!kept_.has_room(by, object.extent.bytes)) return false;
  const auto extent = take_extent(object);
  kept_.keep(by, {extent, std::exchange(object.writers, {})});
  out.push_back(Kept{by, extent});
  return true;
}

void Catalog::free(Entry& entry, const std::string& why, Effects& out) {
  auto& [id, object] = entry;
  if (!object.freed) {
    object.freed = true;
    owners_.remove(id, object.owner, object.is_copy() ? ProcessId() : object.writer);
    const Refusal gone{Refusal::Kind::Unknown,
                       fmt::format("object {} is gone: {}", to_string(id), why)};
    if (object.state == State::Waiting) {
      const RequestKey request{object.writer, object.create_request};
      requests_.erase(request);
      if (const auto writer = processes_.find(object.writer); writer != processes_.end()) {
        writer->second.writing.erase(id);
        out.push_back(Declined{request.first, request.second, gone});
      }
    }
    decline_getters(entry, gone, out);
    for (const auto& [process, count] : object.pins) {
      if (object.state != State::Creating && !is_node(process))
        out.push_back(Recall{process, 0, id});
    }
    if (object.used_by_node) out.push_back(Gone{object.job, id, object.is_copy()});
    waiting_.leave(object.in_waiting);
    update_lru(entry);
  }
  remove_if_idle(entry, out);
}

/// A freed object goes as soon as nobody uses its memory. The entry is invalid afterwards.
void Catalog::remove_if_idle(Entry& entry, Effects& out) {
  auto& [id, object] = entry;
  if (!object.freed || !object.pins.empty() || object.work != Work::None) return;
  assert(!object.in_lru && object.getters.empty());
  return_extent(object);
  if (object.on_disk) {
    disk_bytes_ -= object.bytes;
    out.push_back(Erase{id});
  }
  const auto number = object.job;
  jobs_.at(number).objects.erase(id);
  objects_.erase(ObjectId(id));
  close_if_empty(number, out);
}

/// A job that has ended, and of which nothing is left.
void Catalog::close_if_empty(JobId number, Effects& out) {
  const auto job = jobs_.find(number);
  if (!job->second.ended || !job->second.objects.empty()) return;
  out.push_back(CloseArena{number});
  processes_.erase(node_of(number));
  pins_.forget(node_of(number));
  jobs_.erase(job);
}

Effects Catalog::returned(ProcessId by, std::uint64_t round,
                          const std::vector<std::uint64_t>& offsets) {
  Effects out;
  const auto process = processes_.find(by);
  if (process == processes_.end()) return out;
  auto& extents = jobs_.at(process->second.job).extents;
  for (const auto offset : offsets) {
    if (auto pages = kept_.take(by, offset))
      extents.give_back(pages->extent, std::move(pages->writers));
  }
  shortage_.on_answer(by, round);
  serve(out);
  return out;
}

// ---- ends ---------------------------------------------------------------------------------------

Effects Catalog::process_ended(ProcessId process) {
  Effects out;
  end_process(process, out);
  free_owned(process, out);
  serve(out);
  return out;
}

void Catalog::end_process(ProcessId number, Effects& out) {
  const auto found = processes_.find(number);
  if (found == processes_.end()) return;
  for (auto at = requests_.lower_bound({number, {}});
       at != requests_.end() && at->first.first == number;) {
    auto* entry = find(at->second);
    const auto early = early_.find(at->second);
    if (entry != nullptr) std::erase(entry->second.getters, at->first);
    if (early != early_.end()) std::erase(early->second, at->first);
    at = requests_.erase(at);
  }
  const std::vector<ObjectId> writing(found->second.writing.begin(), found->second.writing.end());
  auto& extents = jobs_.at(found->second.job).extents;
  for (auto& pages : kept_.take_all(number))
    extents.give_back(pages.extent, std::move(pages.writers));
  for (const auto& id : pins_.of(number)) {
    auto& entry = *find(id);
    unpin(entry, number, entry.second.pins.of(number));
    remove_if_idle(entry, out);
  }
  pins_.forget(number);
  processes_.erase(found);
  shortage_.on_process_ended(number);
  for (const auto& id : writing) {
    if (auto* entry = find(id)) free(*entry, "its writer ended before it was complete", out);
  }
  std::erase_if(early_, [](const auto& early) { return early.second.empty(); });
  std::vector<ObjectId> lost;
  for (const auto& [id, getters] : early_) {
    if (id.process == number) lost.push_back(id);
  }
  for (const auto& id : lost) {
    const auto why = fmt::format("object {} was never made: its writer has ended", to_string(id));
    decline_early(id, {Refusal::Kind::Unknown, why}, out);
  }
  for (auto& [owner, left] : owners_.end_writer(number))
    out.push_back(Orphans{owner, std::move(left)});
}

void Catalog::decline_early(ObjectId object, const Refusal& refusal, Effects& out) {
  const auto early = early_.extract(object);
  if (!early || objects_.contains(object)) return;
  for (const auto& [by, request] : early.mapped()) {
    requests_.erase({by, request});
    out.push_back(Declined{by, request, refusal});
  }
}

Effects Catalog::owner_ended(ProcessId owner) {
  Effects out;
  free_owned(owner, out);
  serve(out);
  return out;
}

void Catalog::free_owned(ProcessId owner, Effects& out) {
  for (const auto& id : owners_.end(owner)) free(*find(id), "its owner has ended", out);
}

Effects Catalog::job_ended(JobId job) {
  Effects out;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return out;
  std::vector<ProcessId> processes;
  for (const auto& [number, process] : processes_) {
    if (process.job == job && !is_node(number)) processes.push_back(number);
  }
  for (const auto number : processes) end_process(number, out);
  // Freed below.
  std::erase_if(out, [](const Effect& effect) { return std::holds_alternative<Orphans>(effect); });
  const std::vector<ObjectId> objects(found->second.objects.begin(), found->second.objects.end());
  // Before it is empty: what is under way for some of its objects may take a while.
  found->second.ended = true;
  for (const auto& id : objects) free(*find(id), "its job has ended", out);
  if (jobs_.contains(job)) close_if_empty(job, out);
  serve(out);
  return out;
}

// ---- time ---------------------------------------------------------------------------------------

bool Catalog::waits_in_line(ProcessId by, RequestId request) const {
  const auto found = requests_.find({by, request});
  if (found == requests_.end()) return false;
  const auto object = objects_.find(found->second);
  if (object == objects_.end()) return false;  // a get of what is not known yet
  return object->second.in_waiting || object->second.work == Work::Read ||
         object->second.work == Work::Commit;
}

Effects Catalog::expired(ProcessId by, RequestId request) {
  Effects out;
  const auto found = requests_.find({by, request});
  if (found == requests_.end()) return out;
  const auto id = found->second;
  auto* entry = find(id);
  if (entry != nullptr && entry->second.state == State::Waiting && entry->second.writer == by &&
      entry->second.create_request == request) {
    expire_create(*entry, out);
  } else {
    expire_get({by, request}, id, out);
  }
  serve(out);
  return out;
}

void Catalog::expire_create(Entry& entry, Effects& out) {
  entry.second.impatient = true;  // memory that is being committed is waited for
  if (entry.second.work == Work::None) refuse(entry, no_room(entry.second.bytes), out);
}

void Catalog::expire_get(RequestKey request, ObjectId id, Effects& out) {
  requests_.erase(request);
  Refusal refusal{Refusal::Kind::TimedOut, {}};
  auto* entry = find(id);
  if (entry == nullptr) {
    std::erase(early_[id], request);
    if (early_[id].empty()) early_.erase(id);
    refusal.message = fmt::format("process {} did not make object {} in time, or has freed it",
                                  id.process, to_string(id));
  } else {
    auto& object = entry->second;
    std::erase(object.getters, request);
    if (object.in_waiting && object.state == State::Spilled) {
      refusal = no_room(object.bytes);
      if (object.getters.empty()) waiting_.leave(object.in_waiting);
    } else {
      refusal.message = fmt::format(
          "object {} ({}) was not {} in time", to_string(id), format_bytes(object.bytes),
          object.state == State::Spilled ? "read back from the disk" : "sealed");
    }
  }
  out.push_back(Declined{request.first, request.second, std::move(refusal)});
}

Effects Catalog::recall_over() {
  Effects out;
  shortage_.on_recall_over();
  serve(out);
  return out;
}

Effects Catalog::memory_may_grow() {
  Effects out;
  limit_bytes_ = options_.cap_bytes;
  limited_because_.reset();
  serve(out);
  return out;
}

}  // namespace troupe::store
