#include "objects/store_link.hpp"

#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "log/log.hpp"
#include "objects/blocking.hpp"
#include "objects/object.hpp"
#include "store/codec.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {

Failure failure_of(const store::Refusal& refusal) {
  using Kind = store::Refusal::Kind;
  Failure failure{.message = refusal.message};
  switch (refusal.kind) {
    case Kind::TooLarge:
      failure.kind = Failure::Kind::TooLarge;
      break;
    case Kind::Full:
    case Kind::MemoryFull:
    case Kind::DiskFull:
    case Kind::Busy:
      failure.kind = Failure::Kind::StoreFull;
      break;
    case Kind::TimedOut:
      failure.kind = Failure::Kind::TimedOut;
      break;
    case Kind::Stopped:
      failure.kind = Failure::Kind::Disconnected;
      break;
    default:
      failure.kind = Failure::Kind::ObjectLost;
  }
  return failure;
}

StoreLink::StoreLink(Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      remote_(callbacks_.loop, callbacks_.to_nodes, callbacks_.watch_node) {}
StoreLink::~StoreLink() { note_numbers(); }

void StoreLink::note_numbers() {
  if (!clients_.empty()) last_object_ = clients_.back()->last_object();
}

// ---- any thread ---------------------------------------------------------------------------------

store::Client* StoreLink::client() {
  if (auto* client = client_.load(std::memory_order_acquire)) return client;
  if (!may_be()) return nullptr;
  auto& process = ProcessContext::current();
  auto settled = detail::Object::pending(0);
  boost::asio::post(callbacks_.loop, [this, settled] {
    attach([settled](store::Client*) { settled->complete(detail::Payload{}); });
  });
  wait_giving_cpu_back(
      process, [&] { return settled->ready(); }, std::nullopt);
  return client_.load(std::memory_order_acquire);
}

void StoreLink::view(const store::Wanted& wanted, OnFetched done) {
  auto here = [done](std::variant<store::ViewPtr, store::Refusal> view) {
    if (auto* refusal = std::get_if<store::Refusal>(&view)) return done(std::move(*refusal));
    const auto& seen = std::get<store::ViewPtr>(view);
    done(FetchedView{seen->bytes(), seen});
  };
  if (auto* client = client_.load(std::memory_order_acquire))
    return client->view(wanted, std::move(here));
  boost::asio::post(callbacks_.loop,
                    [this, wanted, here = std::move(here), done = std::move(done)] {
                      attach([this, wanted, here, done](store::Client* client) {
                        if (client) return client->view(wanted, here);
                        if (leaving_)
                          return done(store::Refusal{store::Refusal::Kind::Stopped,
                                                     "this process is leaving its cluster"});
                        remote_.view(wanted, done);
                      });
                    });
}

void StoreLink::free(const store::Wanted& place) {
  if (auto* client = client_.load(std::memory_order_acquire)) return client->free(place);
  boost::asio::post(callbacks_.loop, [this, place] {
    attach([this, place](store::Client* client) {
      if (client) return client->free(place);
      if (!leaving_) remote_.free(place);
    });
  });
}

// ---- the loop -----------------------------------------------------------------------------------

void StoreLink::attach(Then then) {
  if (auto* client = client_.load(std::memory_order_relaxed)) return then(client);
  const auto stage = stage_.load(std::memory_order_relaxed);
  if (stage == Stage::None && Clock::now() < ask_again()) return then(nullptr);
  waiting_.push_back(std::move(then));
  if (stage == Stage::Asking) return;
  stage_.store(Stage::Asking, std::memory_order_release);
  callbacks_.connect([this](std::variant<Reached, Failure> reached) {
    if (std::holds_alternative<Failure>(reached)) return settle(Stage::None, nullptr);
    connection_ = std::get<Reached>(reached).connection;
    node_ = std::get<Reached>(reached).node;
    transport::Outgoing message;
    message.root().setObjectAttach();
    connection_->send(message);
  });
}

void StoreLink::prefetch(const store::Wanted& wanted) {
  attach([wanted](store::Client* client) {
    if (client) client->view(wanted, [](const auto&) {});
  });
}

bool StoreLink::on_message(const transport::ConnectionPtr& from, wire::Message::Reader message) {
  if (message.isObjectAttached()) {
    attached(from, message.getObjectAttached());
    return true;
  }
  if (message.isObjectRecall() && message.getObjectRecall().isOrphans()) {
    on_orphans(message.getObjectRecall().getOrphans());
    return true;
  }
  auto* client = client_.load(std::memory_order_relaxed);
  return client && client->on_message(message);
}

void StoreLink::on_orphans(capnp::List<wire::ObjectKey>::Reader orphans) {
  std::vector<store::ObjectId> objects;
  for (const auto orphan : orphans) objects.push_back(store::read_object(orphan));
  if (callbacks_.orphaned) callbacks_.orphaned(objects);
}

void StoreLink::attached(const transport::ConnectionPtr& from,
                         wire::ObjectAttached::Reader answer) {
  auto descriptors = from->take_descriptors();
  if (stage_.load(std::memory_order_relaxed) != Stage::Asking) return;
  if (answer.getFailure().size() != 0) return do_without(answer.getFailure());
  if (descriptors.size() != 1) return do_without("it has no free descriptor (see ulimit -n)");
  auto mapping = store::Mapping::map(descriptors[0].get());
  if (const auto* refusal = std::get_if<store::Refusal>(&mapping))
    return do_without(refusal->message);
  store::ClientOptions options;
  options.last_object = last_object_;
  clients_.push_back(std::make_unique<store::Client>(
      callbacks_.loop, callbacks_.self->process, std::move(std::get<store::Mapping>(mapping)),
      [to = from](transport::Outgoing&& message) { to->send(message); }, options));
  {
    const std::lock_guard lock(addresses_mutex_);
    addresses_.emplace_back(clients_.back().get(), read_address(answer.getStore()));
  }
  settle(Stage::Attached, clients_.back().get());
}

AddressPtr StoreLink::address_of(const store::Client& client) const {
  const std::lock_guard lock(addresses_mutex_);
  const auto found =
      std::ranges::find(addresses_, &client, [](const auto& one) { return one.first; });
  return found == addresses_.end() ? nullptr : found->second;
}

/// Its large values go in messages until it has tried again.
void StoreLink::do_without(const std::string& why) {
  if (std::exchange(last_why_, why) != why) {
    log::warn(
        fmt::format("process {} cannot use the object store of its node, and sends large values in "
                    "messages: {}",
                    callbacks_.self->process, why));
  }
  settle(Stage::None, nullptr);
}

void StoreLink::settle(Stage stage, store::Client* client) {
  ask_again_.store((Clock::now() + kAgain).time_since_epoch().count());
  client_.store(client, std::memory_order_release);
  stage_.store(stage, std::memory_order_release);
  for (auto& then : std::exchange(waiting_, {})) then(client);
}

void StoreLink::closed(const std::string& why) {
  // First: whoever its end wakes up, and stores something next, asks anew.
  auto* client = client_.exchange(nullptr, std::memory_order_acq_rel);
  connection_ = nullptr;
  if (client) client->closed(why);
  note_numbers();
  settle(Stage::None, nullptr);
}

void StoreLink::node_lost(NodeId node, const std::string& why) {
  if (!connection_ || node_ != node) return;
  connection_->close();
  closed(why);
}

}  // namespace troupe::runtime
