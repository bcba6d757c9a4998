#include "store/client/client_core.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "store/codec.hpp"
#include "wire/codec.hpp"

namespace troupe::store {
namespace {

/// Kept memory may be larger than what goes into it by a quarter: it is not cut.
constexpr std::uint64_t loosest_fit(std::uint64_t bytes) { return bytes + bytes / 4; }

Refusal outside(ObjectId object) {
  return {Refusal::Kind::Damaged,
          fmt::format("the node says that object {} lies where its object store has no memory",
                      to_string(object))};
}

}  // namespace

ClientCore::ClientCore(boost::asio::io_context& loop, ProcessId self, Mapping arena,
                       Client::Send send, ClientOptions options)
    : loop_(loop),
      self_(self),
      arena_(std::move(arena)),
      options_(options),
      send_(std::move(send)),
      last_object_(options.last_object) {}

void ClientCore::send_later(std::function<void(wire::Message::Builder)> write) {
  if (closed_) return;
  boost::asio::post(loop_, [self = shared_from_this(), write = std::move(write)] {
    if (!self->send_) return;
    transport::Outgoing message;
    write(message.root());
    self->send_(std::move(message));
  });
}

// ---- create, seal -------------------------------------------------------------------------------

void ClientCore::create(std::uint64_t bytes, ProcessId owner, Client::OnCreated done) {
  Lock lock(mutex_);
  if (closed_) {
    const auto why = *closed_;
    lock.unlock();
    return done(why);
  }
  const ObjectId object{self_, ++last_object_};
  const auto kept = take_kept(bytes);
  const RequestId request = kept ? RequestId() : ++last_request_;
  Client::OnCreated done_here;  // where no answer is waited for
  if (kept) {
    done_here = std::move(done);
  } else {
    pending_.emplace(request, Creation{object, bytes, std::move(done)});
  }
  send_later([=](wire::Message::Builder message) {
    auto create = message.initObjectCreate();
    create.setRequest(request.value());
    write_object(create.initObject(), object);
    create.setOwner(owner.value());
    create.setBytes(bytes);
    create.setKept(kept.has_value());
    create.setOffset(kept ? kept->offset : 0);
  });
  lock.unlock();
  if (kept)
    done_here(Writable(shared_from_this(), object, arena_.writable({kept->offset, bytes}), true));
}

std::optional<Extent> ClientCore::take_kept(std::uint64_t bytes) {
  const auto found = kept_.lower_bound(bytes);
  if (found == kept_.end() || found->first > loosest_fit(whole_pages(bytes))) return std::nullopt;
  const Extent extent{found->second, found->first};
  kept_.erase(found);
  return extent;
}

void ClientCore::seal(ObjectId object, bool pin, std::span<std::byte> bytes) {
  Lock lock(mutex_);
  if (pin) held_[object] = Held{.bytes = arena_.as_readable(bytes), .pins = 1, .users = 1};
  send_later([=](wire::Message::Builder message) {
    auto seal = message.initObjectSeal();
    write_object(seal.initObject(), object);
    seal.setPin(pin);
  });
}

void ClientCore::give_up(ObjectId object) {
  const Lock lock(mutex_);
  free_later(object);
}

void ClientCore::free_later(ObjectId object, const runtime::AddressPtr& at) {
  send_later([=](wire::Message::Builder message) {
    auto free = message.initObjectFree();
    write_object(free.initObject(), object);
    free.setKeep(true);
    if (at) runtime::write_address(free.initAt(), *at);
  });
}

// ---- views --------------------------------------------------------------------------------------

void ClientCore::view(const store::Wanted& wanted, Client::OnView done) {
  const auto object = wanted.object;
  Lock lock(mutex_);
  if (const auto held = held_.find(object); held != held_.end()) {
    auto view = use(held);
    lock.unlock();
    return done(std::move(view));
  }
  if (closed_) {
    const auto why = *closed_;
    lock.unlock();
    return done(why);
  }
  const RequestId request = ++last_request_;
  pending_.emplace(request, PendingView{object, std::move(done)});
  send_later([=](wire::Message::Builder message) {
    auto get = message.initObjectGet();
    get.setRequest(request.value());
    write_object(get.initObject(), wanted.object);
    get.setBytes(wanted.bytes);
    get.setOwner(wanted.owner.value());
    if (wanted.at) runtime::write_address(get.initAt(), *wanted.at);
  });
}

ViewPtr ClientCore::make_view(ObjectId object, std::span<const std::byte> bytes) {
  return std::make_shared<const View>(shared_from_this(), object, bytes);
}

ViewPtr ClientCore::use(HeldAt held) {
  if (held->second.users++ == 0) idle_.erase(held->second.idle);
  return make_view(held->first, held->second.bytes);
}

/// The last user of a view has gone.
void ClientCore::release(ObjectId object) {
  Lock lock(mutex_);
  const auto held = held_.find(object);
  if (--held->second.users > 0) return;
  held->second.idle = idle_.insert(idle_.end(), object);
  if (held->second.brief || closed_) return drop(held);
  if (idle_.size() > options_.idle_views) drop(held_.find(idle_.front()));
}

/// Nobody uses it: the node's pins go back.
void ClientCore::drop(HeldAt held) {
  idle_.erase(held->second.idle);
  unpin_later(held->first, held->second.pins);
  held_.erase(held);
}

void ClientCore::unpin_later(ObjectId object, std::uint32_t count) {
  send_later([=](wire::Message::Builder message) {
    auto unpin = message.initObjectUnpin();
    write_object(unpin.initObject(), object);
    unpin.setCount(count);
  });
}

void ClientCore::free(const store::Wanted& place) {
  const auto object = place.object;
  Lock lock(mutex_);
  if (const auto held = held_.find(object); held != held_.end()) {
    held->second.brief = true;
    if (held->second.users == 0) drop(held);
  }
  free_later(object, place.at);
}

// ---- from the node ------------------------------------------------------------------------------

bool ClientCore::on_message(wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::OBJECT_CREATED:
      on_created(message.getObjectCreated());
      return true;
    case wire::Message::OBJECT_GOT:
      on_got(message.getObjectGot());
      return true;
    case wire::Message::OBJECT_DECLINED:
      on_declined(message.getObjectDeclined());
      return true;
    case wire::Message::OBJECT_KEPT:
      on_kept(message.getObjectKept());
      return true;
    case wire::Message::OBJECT_RECALL:
      on_recall(message.getObjectRecall());
      return true;
    default:
      return false;
  }
}

void ClientCore::on_created(wire::ObjectCreated::Reader created) {
  Lock lock(mutex_);
  const auto pending = pending_.extract(RequestId(created.getRequest()));
  lock.unlock();
  auto* creation = pending ? std::get_if<Creation>(&pending.mapped()) : nullptr;
  if (creation == nullptr) return;
  const Extent extent{created.getExtent().getOffset(), creation->bytes};
  if (!arena_.covers(extent)) return creation->done(outside(creation->object));
  const auto bytes = arena_.writable(extent);
  creation->done(Writable(shared_from_this(), creation->object, bytes, created.getWarm()));
}

void ClientCore::on_got(wire::ObjectGot::Reader got) {
  Lock lock(mutex_);
  const auto pending = pending_.extract(RequestId(got.getRequest()));
  auto* wanted = pending ? std::get_if<PendingView>(&pending.mapped()) : nullptr;
  if (wanted == nullptr) return;
  const Extent extent{got.getExtent().getOffset(), got.getBytes()};
  if (!arena_.covers(extent)) {
    lock.unlock();
    return wanted->done(outside(wanted->object));
  }
  auto [held, is_new] = held_.try_emplace(wanted->object);
  if (is_new) {
    held->second.bytes = arena_.readable(extent);
    held->second.idle = idle_.insert(idle_.end(), wanted->object);
  }
  ++held->second.pins;
  auto view = use(held);
  lock.unlock();
  wanted->done(std::move(view));
}

void ClientCore::on_declined(wire::ObjectDeclined::Reader declined) {
  Lock lock(mutex_);
  const auto pending = pending_.extract(RequestId(declined.getRequest()));
  lock.unlock();
  if (!pending) return;
  const Refusal refusal{static_cast<Refusal::Kind>(declined.getKind()),
                        declined.getMessage().cStr()};
  std::visit([&](auto& one) { one.done(refusal); }, pending.mapped());
}

void ClientCore::on_kept(wire::ObjectExtent::Reader extent) {
  const Lock lock(mutex_);
  if (arena_.covers({extent.getOffset(), extent.getBytes()}))
    kept_.emplace(extent.getBytes(), extent.getOffset());
}

void ClientCore::on_recall(wire::ObjectRecall::Reader recall) {
  const Lock lock(mutex_);
  if (recall.isFreed()) {
    const auto held = held_.find(read_object(recall.getFreed()));
    if (held == held_.end()) return;
    held->second.brief = true;
    if (held->second.users == 0) drop(held);
    return;
  }
  while (!idle_.empty()) drop(held_.find(idle_.front()));
  for (auto& [object, held] : held_) held.brief = true;
  std::vector<std::uint64_t> offsets;
  for (const auto& [bytes, offset] : std::exchange(kept_, {})) offsets.push_back(offset);
  send_later(
      [round = recall.getRound(), offsets = std::move(offsets)](wire::Message::Builder message) {
        auto returned = message.initObjectReturn();
        returned.setRound(round);
        auto list = returned.initOffsets(static_cast<unsigned>(offsets.size()));
        for (unsigned i = 0; i < list.size(); ++i) list.set(i, offsets[i]);
      });
}

std::uint64_t ClientCore::last_object() {
  const Lock lock(mutex_);
  return last_object_;
}

void ClientCore::closed(const std::string& why) {
  Lock lock(mutex_);
  if (closed_) return;
  closed_ = Refusal{Refusal::Kind::Stopped, why};
  send_ = nullptr;
  kept_.clear();
  const auto pending = std::exchange(pending_, {});
  const auto refusal = *closed_;
  lock.unlock();
  for (const auto& [request, waits] : pending) {
    std::visit([&](const auto& one) { one.done(refusal); }, waits);
  }
}

}  // namespace troupe::store
