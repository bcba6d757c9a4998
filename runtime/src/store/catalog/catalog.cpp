#include "store/catalog/catalog.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace troupe::store {
namespace {

/// More than any process can map; what is asked for beyond that would not fit into a file's size.
constexpr std::uint64_t kMostSpaceBytes = std::uint64_t{1} << 56;

std::uint64_t space_of(const CatalogOptions& options) {
  const auto factor = std::max<std::uint64_t>(options.space_factor, 1);
  const auto cap = std::clamp(options.cap_bytes, kPageBytes, kMostSpaceBytes / factor);
  return whole_pages(cap) * factor;
}

}  // namespace

Catalog::Catalog(CatalogOptions options)
    : options_(options),
      space_bytes_(space_of(options)),
      limit_bytes_(options.cap_bytes),
      kept_(options.keep_bytes) {}

Catalog::Entry* Catalog::find(ObjectId object) {
  const auto found = objects_.find(object);
  return found == objects_.end() ? nullptr : &*found;
}

std::optional<Refusal> Catalog::why_not_attach(ProcessId process, JobId job) const {
  if (!process || is_node(process)) {
    return Refusal{Refusal::Kind::Invalid,
                   fmt::format("{} is not the number of a process", process)};
  }
  const auto known = job_of(process);
  if (!known || *known == job) return std::nullopt;
  return Refusal{Refusal::Kind::Invalid,
                 fmt::format("process {} is of job {}, not of job {}", process, *known, job)};
}

void Catalog::attach(ProcessId process, JobId job) {
  assert(!why_not_attach(process, job));
  processes_[process].job = job;
  owners_.returns(process);
  processes_[node_of(job)].job = job;
  jobs_.try_emplace(job, space_bytes_).first->second.ended = false;
}

std::optional<JobId> Catalog::job_of(ProcessId process) const {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return std::nullopt;
  return found->second.job;
}

std::optional<JobId> Catalog::job_of(ObjectId object) const {
  const auto found = objects_.find(object);
  if (found == objects_.end() || found->second.freed) return std::nullopt;
  return found->second.job;
}

bool Catalog::is_coming(ObjectId object) const {
  const auto found = objects_.find(object);
  if (found == objects_.end() || !found->second.is_copy()) return false;
  return found->second.state == State::Waiting || found->second.state == State::Creating;
}

// ---- create, seal -------------------------------------------------------------------------------

std::optional<Refusal> Catalog::why_not_name(ProcessId by, ObjectId object) const {
  const bool may_make = object.process == by || is_node(by);
  if (may_make && !objects_.contains(object)) return std::nullopt;
  return Refusal{Refusal::Kind::Invalid,
                 fmt::format("process {} cannot make object {}: {}", by, to_string(object),
                             may_make ? "there is one" : "the number is another process's")};
}

std::optional<Refusal> Catalog::why_not_create(ProcessId by, ObjectId object, ProcessId owner,
                                               std::uint64_t bytes) const {
  using enum Refusal::Kind;
  if (!processes_.contains(by))
    return Refusal{Stopped, fmt::format("process {} is not known to its node", by)};
  if (auto refusal = why_not_name(by, object)) return refusal;
  if (owners_.has_ended(owner)) {
    return Refusal{Unknown, fmt::format("object {} was to be made for process {}, which has ended",
                                        to_string(object), owner)};
  }
  if (bytes > options_.cap_bytes) {
    return Refusal{
        TooLarge,
        fmt::format("an object of {} was to be stored, and the object store of this node holds {}",
                    format_bytes(bytes), format_bytes(options_.cap_bytes))};
  }
  if (objects_.size() >= options_.most_objects) {
    return Refusal{Busy,
                   fmt::format("the object store of this node holds {} objects, which is its limit",
                               options_.most_objects)};
  }
  return std::nullopt;
}

/// -> whether the object was freed before its writer made it.
bool Catalog::note_create(ObjectId object) {
  const auto writer = processes_.find(object.process);
  return writer != processes_.end() && writer->second.numbers.on_create(object.number);
}

Catalog::Entry& Catalog::add(ProcessId by, ObjectId object, ProcessId owner, std::uint64_t bytes) {
  auto& process = processes_.at(by);
  auto& entry = *objects_.emplace(object, Object{}).first;
  entry.second.job = process.job;
  entry.second.writer = by;
  entry.second.owner = owner;
  entry.second.bytes = bytes;
  process.writing.insert(object);
  jobs_.at(process.job).objects.insert(object);
  owners_.add(object, owner, is_node(by) ? ProcessId() : by);
  if (const auto early = early_.extract(object)) entry.second.getters = std::move(early.mapped());
  return entry;
}

Effects Catalog::create(ProcessId by, RequestId request, ObjectId object, ProcessId owner,
                        std::uint64_t bytes) {
  auto refusal = why_not_create(by, object, owner, bytes);
  const bool is_own = object.process == by;
  const bool was_freed = is_own && note_create(object);
  if (!refusal && requests_.contains({by, request}))
    refusal = {Refusal::Kind::Invalid, "a request with this number waits already"};
  if (!refusal && requests_.size() >= options_.most_waiting) {
    refusal = {Refusal::Kind::Busy,
               fmt::format("{} requests wait for the object store of this node already",
                           requests_.size())};
  }
  Effects out;
  if (refusal) {
    if (is_own || is_node(by)) decline_early(object, *refusal, out);
    out.push_back(Declined{by, request, std::move(*refusal)});
    return out;
  }
  auto& entry = add(by, object, owner, bytes);
  entry.second.create_request = request;
  entry.second.free_when_sealed = was_freed;
  requests_.emplace(RequestKey{by, request}, object);
  place_or_wait(entry, out);
  return out;
}

std::variant<Effects, Refusal> Catalog::create_in_kept(ProcessId by, ObjectId object,
                                                       ProcessId owner, std::uint64_t bytes,
                                                       std::uint64_t offset) {
  if (!processes_.contains(by)) return Effects{};  // its job has ended
  if (auto refusal = why_not_name(by, object)) return std::move(*refusal);
  const bool was_freed = note_create(object);
  auto pages = kept_.take(by, offset, bytes);
  if (!pages) {
    return Refusal{
        Refusal::Kind::Invalid,
        fmt::format("process {} made object {} in memory of the object store that it does not keep",
                    by, to_string(object))};
  }
  auto& entry = add(by, object, owner, bytes);
  entry.second.state = State::Creating;
  entry.second.free_when_sealed = was_freed;
  set_extent(entry.second, pages->extent);
  entry.second.writers = std::move(pages->writers);
  pin(entry, by);
  Effects out;
  // Its writer has not heard of that, and is in the midst of it: the memory goes when it has
  // written or given up.
  if (owners_.has_ended(owner)) free(entry, "its owner has ended", out);
  return out;
}

Effects Catalog::seal(ProcessId by, ObjectId object, bool pin) {
  auto* entry = find(object);
  if (entry == nullptr || entry->second.writer != by || entry->second.state != State::Creating)
    return {};
  Effects out;
  entry->second.state = State::Sealed;
  processes_.at(by).writing.erase(object);
  answer_getters(*entry, out);
  if (pin) {
    recall_view(*entry, by, out);
  } else {
    unpin(*entry, by, 1);
  }
  update_lru(*entry);
  if (entry->second.free_when_sealed) {
    free(*entry, "it was freed", out);
  } else {
    remove_if_idle(*entry, out);
  }
  serve(out);
  return out;
}

// ---- get, unpin ---------------------------------------------------------------------------------

/// It is not known, and its writer may be about to make it.
bool Catalog::may_come(ObjectId object) const {
  const auto writer = processes_.find(object.process);
  return !objects_.contains(object) && writer != processes_.end() &&
         writer->second.numbers.may_come(object.number);
}

Effects Catalog::get(ProcessId by, RequestId request, ObjectId object, bool copied) {
  const auto decline = [&](Refusal::Kind kind, std::string why) -> Effects {
    return {Declined{by, request, {kind, std::move(why)}}};
  };
  const auto process = processes_.find(by);
  if (process == processes_.end())
    return decline(Refusal::Kind::Stopped, "the process is not known to its node");
  auto* entry = find(object);
  const bool is_there =
      entry != nullptr && !entry->second.freed && entry->second.job == process->second.job;
  if (!is_there && !may_come(object) && !(copied && entry == nullptr)) {
    return decline(Refusal::Kind::Unknown,
                   fmt::format("object {} is not in the object store of this node: it was freed, "
                               "or its owner has ended",
                               to_string(object)));
  }
  Effects out;
  if (is_there && is_node(by)) entry->second.used_by_node = true;
  if (is_there && entry->second.state == State::Sealed) {
    give_view(*entry, {by, request}, out);
    return out;
  }
  if (requests_.size() >= options_.most_waiting) {
    return decline(Refusal::Kind::Busy,
                   fmt::format("{} requests wait for the object store of this node already",
                               requests_.size()));
  }
  const RequestKey key{by, request};
  if (!requests_.emplace(key, object).second)
    return decline(Refusal::Kind::Invalid, "a request with this number waits already");
  (is_there ? entry->second.getters : early_[object]).push_back(key);
  if (is_there && entry->second.state == State::Spilled && entry->second.work == Work::None &&
      !entry->second.in_waiting) {
    place_or_wait(*entry, out);
  }
  return out;
}

void Catalog::give_view(Entry& entry, RequestKey request, Effects& out) {
  const auto [by, number] = request;
  pin(entry, by);
  out.push_back(Got{by, number, entry.first, entry.second.extent, entry.second.bytes});
  recall_view(entry, by, out);
}

/// All were asked when memory became short: what is given out after that must not be held without
/// use either.
void Catalog::recall_view(const Entry& entry, ProcessId by, Effects& out) {
  if (!waiting_.empty() && !is_node(by)) out.push_back(Recall{by, 0, entry.first});
}

void Catalog::answer_getters(Entry& entry, Effects& out) {
  auto& [id, object] = entry;
  for (const auto& [by, request] : std::exchange(object.getters, {})) {
    requests_.erase({by, request});
    if (object.freed || processes_.at(by).job != object.job) {
      const auto why = fmt::format("object {} was freed, or is of another job", to_string(id));
      out.push_back(Declined{by, request, {Refusal::Kind::Unknown, why}});
      continue;
    }
    give_view(entry, {by, request}, out);
  }
}

void Catalog::decline_getters(Entry& entry, const Refusal& refusal, Effects& out) {
  for (const auto& [by, request] : std::exchange(entry.second.getters, {})) {
    requests_.erase({by, request});
    out.push_back(Declined{by, request, refusal});
  }
}

void Catalog::pin(Entry& entry, ProcessId by) {
  assert(processes_.contains(by));
  if (is_node(by)) entry.second.used_by_node = true;
  if (entry.second.pins.empty()) pinned_bytes_ += entry.second.extent.bytes;
  pins_.pin(entry.first, entry.second.pins, by);
  update_lru(entry);
}

void Catalog::unpin(Entry& entry, ProcessId by, std::uint32_t count) {
  if (!pins_.unpin(entry.first, entry.second.pins, by, count)) return;
  if (entry.second.pins.empty()) pinned_bytes_ -= entry.second.extent.bytes;
  update_lru(entry);
}

Effects Catalog::unpin(ProcessId by, ObjectId object, std::uint32_t count) {
  auto* entry = find(object);
  if (entry == nullptr) return {};
  // The pin of a writer ends with seal, or with its free. The node may have more of them than that
  // one.
  const bool writes =
      entry->second.state == State::Creating && entry->second.writer == by && !is_node(by);
  if (writes) return {};
  Effects out;
  unpin(*entry, by, count);
  remove_if_idle(*entry, out);
  serve(out);
  return out;
}

// ---- copies -------------------------------------------------------------------------------------

void Catalog::pin_copy(ObjectId object) {
  auto& entry = *find(object);
  assert(entry.second.is_copy() && entry.second.state == State::Creating);
  pin(entry, entry.second.writer);
}

Effects Catalog::copied(ObjectId object, const std::optional<Refusal>& failure) {
  auto& entry = *find(object);
  assert(entry.second.is_copy() && entry.second.state == State::Creating);
  const auto node = entry.second.writer;
  if (!failure) return seal(node, object, false);
  Effects out;
  decline_getters(entry, *failure, out);
  for (auto& effect : free(node, object, false)) out.push_back(std::move(effect));
  return out;
}

}  // namespace troupe::store
