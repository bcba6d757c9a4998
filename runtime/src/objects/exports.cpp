#include "objects/exports.hpp"

#include <algorithm>
#include <utility>

#include "objects/stored.hpp"
#include "store/codec.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {

void Exports::write(wire::Payload::Builder into, const detail::Payload& payload,
                    const AddressPtr& to) {
  if (payload.stored) {
    write_stored(into.initStored(), payload.stored);
  } else {
    into.setData(kj::arrayPtr(reinterpret_cast<const kj::byte*>(payload.bytes.data()),
                              payload.bytes.size()));
  }
  auto refs = into.initRefs(static_cast<unsigned>(payload.refs.size()));
  for (unsigned i = 0; i < refs.size(); ++i) {
    const auto& object = payload.refs[i];
    if (object->is_stale()) {  // names nothing any more: whoever asks is told that it is lost
      write_address(refs[i].initOwner(), *callbacks_.self);
      continue;
    }
    refs[i].setObject(object->id());
    write_address(refs[i].initOwner(), object->owner() ? *object->owner() : *callbacks_.self);
    if (!object->owner()) {
      const auto [entry, fresh] = entries_.try_emplace(object->id(), Entry{object, {}});
      if (fresh && entries_.size() == 1) callbacks_.held(true);
      entry->second.accounts[to->process] += 1;
    } else if (object->owner()->process != to->process) {
      callbacks_.send_borrow(object->owner(), object->id(), to->process, 1);
    }
  }
}

detail::Payload Exports::read(wire::Payload::Reader from) {
  detail::Payload payload;
  const auto data = from.getData();
  payload.bytes.assign(reinterpret_cast<const char*>(data.begin()), data.size());
  if (from.hasStored()) payload.stored = read_stored(from.getStored());
  payload.refs.reserve(from.getRefs().size());
  for (auto ref : from.getRefs()) {
    if (ProcessId(ref.getOwner().getProcess()) != callbacks_.self->process) {
      payload.refs.push_back(detail::Object::borrowed(ref.getObject(), read_address(ref.getOwner()),
                                                      callbacks_.release));
    } else if (auto own = find(ref.getObject())) {
      payload.refs.push_back(std::move(own));
    } else {
      auto lost = detail::Object::pending(ref.getObject());
      lost->complete(Failure{.kind = Failure::Kind::ObjectLost,
                             .message = "the value of this ref was given up by its owner"});
      payload.refs.push_back(std::move(lost));
    }
  }
  return payload;
}

// ---- stored values ------------------------------------------------------------------------------

void Exports::write_stored(wire::Stored::Builder into, const detail::StoredPtr& stored) {
  const auto& place = stored->place();
  store::write_object(into.initObject(), place.object);
  into.setBytes(place.bytes);
  into.setOwner(place.owner.value());
  if (place.at) write_address(into.initAt(), *place.at);
  if (stored->is_own()) note_own(stored);
}

void Exports::note_own(const detail::StoredPtr& stored) {
  own_[stored->place().object] = stored;
  if (own_.size() < clean_at_) return;
  std::erase_if(own_, [](const auto& entry) { return entry.second.expired(); });
  clean_at_ = std::max<std::size_t>(64, 2 * own_.size());
}

bool Exports::has_stored(store::ObjectId object) const {
  const auto known = own_.find(object);
  return known != own_.end() && !known->second.expired();
}

detail::StoredPtr Exports::read_stored(wire::Stored::Reader from) {
  store::Wanted place{.object = store::read_object(from.getObject()),
                      .bytes = from.getBytes(),
                      .owner = ProcessId(from.getOwner()),
                      .at = read_address(from.getAt())};
  const bool own = place.owner == callbacks_.self->process;
  if (own) {
    if (auto known = own_.find(place.object); known != own_.end()) {
      if (auto same = known->second.lock()) return same;
    }
  }
  auto stored = std::make_shared<detail::StoredValue>(std::move(place), own);
  if (own) note_own(stored);
  return stored;
}

// ---- counting -----------------------------------------------------------------------------------

void Exports::settle(std::unordered_map<std::uint64_t, Entry>::iterator entry, ProcessId holder,
                     std::int64_t delta) {
  auto& accounts = entry->second.accounts;
  auto account = accounts.try_emplace(holder, 0).first;
  account->second += delta;
  if (account->second == 0) accounts.erase(account);
  if (!accounts.empty()) return;
  entries_.erase(entry);
  if (entries_.empty()) callbacks_.held(false);
}

void Exports::borrow(std::uint64_t object, ProcessId holder, std::int64_t delta) {
  // Told of late: it holds nothing any more.
  if (delta > 0 && callbacks_.has_ended && callbacks_.has_ended(holder)) return;
  if (auto entry = entries_.find(object); entry != entries_.end()) settle(entry, holder, delta);
}

void Exports::forget(ProcessId holder) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    auto current = entry++;
    if (auto account = current->second.accounts.find(holder);
        account != current->second.accounts.end()) {
      settle(current, holder, -account->second);
    }
  }
}

detail::ObjectPtr Exports::find(std::uint64_t object) const {
  auto entry = entries_.find(object);
  return entry == entries_.end() ? nullptr : entry->second.object;
}

}  // namespace troupe::runtime
