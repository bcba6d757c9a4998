#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "store/client/client.hpp"

namespace troupe::store {

/// What a client, its views and its writables share. mutex_ guards all tables: they are used by the
/// threads that create and view, and by the loop that hears from the node. Nothing is called while
/// it is held.
class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  ClientCore(boost::asio::io_context& loop, ProcessId self, Mapping arena, Client::Send send,
             ClientOptions options);

  void create(std::uint64_t bytes, ProcessId owner, Client::OnCreated done);
  void view(const store::Wanted& wanted, Client::OnView done);
  void free(const store::Wanted& place);
  bool on_message(wire::Message::Reader message);
  void closed(const std::string& why);
  std::uint64_t last_object();

  // Of writables and views.
  const Mapping& arena() const { return arena_; }
  void seal(ObjectId object, bool pin, std::span<std::byte> bytes);
  void give_up(ObjectId object);

  void release(ObjectId object);
  ViewPtr make_view(ObjectId object, std::span<const std::byte> bytes);
  bool is_on_loop() const { return loop_.get_executor().running_in_this_thread(); }

 private:
  struct Creation {
    ObjectId object;
    std::uint64_t bytes;
    Client::OnCreated done;
  };
  struct PendingView {
    ObjectId object;
    Client::OnView done;
  };
  /// An object that is pinned for this process, by the node's count `pins` times.
  struct Held {
    std::span<const std::byte> bytes;
    std::uint32_t pins = 0;
    std::uint32_t users = 0;
    bool brief = false;  // not to be held beyond its last user
    std::list<ObjectId>::iterator idle = {};
  };
  using Lock = std::unique_lock<std::mutex>;
  using HeldAt = std::unordered_map<ObjectId, Held>::iterator;

  std::optional<Extent> take_kept(std::uint64_t bytes);
  ViewPtr use(HeldAt held);
  void drop(HeldAt held);
  void on_created(wire::ObjectCreated::Reader created);
  void on_got(wire::ObjectGot::Reader got);
  void on_declined(wire::ObjectDeclined::Reader declined);
  void on_kept(wire::ObjectExtent::Reader extent);
  void on_recall(wire::ObjectRecall::Reader recall);
  void unpin_later(ObjectId object, std::uint32_t count);
  void free_later(ObjectId object, const runtime::AddressPtr& at = nullptr);
  /// Under the mutex; nothing once closed, for the loop may be gone then. Builds the message on the
  /// loop. All messages take this way, so that they stay in order.
  void send_later(std::function<void(wire::Message::Builder)> write);

  boost::asio::io_context& loop_;
  const ProcessId self_;
  const Mapping arena_;
  const ClientOptions options_;
  Client::Send send_;  // the loop's; none: closed

  std::mutex mutex_;
  std::optional<Refusal> closed_;
  std::uint64_t last_object_ = 0;
  RequestId last_request_{};
  std::unordered_map<RequestId, std::variant<Creation, PendingView>> pending_;
  std::multimap<std::uint64_t, std::uint64_t> kept_;  // bytes -> offset
  std::unordered_map<ObjectId, Held> held_;
  std::list<ObjectId> idle_;  // held without users, the longest first
};

}  // namespace troupe::store
