#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <troupe/detail/core.hpp>
#include <troupe/errors.hpp>

#include "ids/address.hpp"
#include "objects/doorbell.hpp"
#include "objects/remote_stores.hpp"
#include "store/client/client.hpp"
#include "transport/connection.hpp"

namespace troupe::runtime {

/// What a caller of the store hears, as others throw it.
Failure failure_of(const store::Refusal& refusal);

/// The way of a process to the object store of its node, taken when the first large value needs it.
///
///   [unused] --first need--> [asking] --descriptor--> [attached] --node gone--> [none]
///                                \------- no store on this machine -------------> [none] --after kAgain--> [unused]
///
/// A worker process asks through the socket that it was born with; a driver connects to a node of
/// its machine. Where that has none, large values are encoded into messages, and those of others
/// are brought into memory of its own.
class StoreLink {
 public:
  static constexpr std::chrono::seconds kAgain{1};

  struct Reached {
    transport::ConnectionPtr connection;
    NodeId node{};
  };
  using Connected = std::function<void(std::variant<Reached, Failure>)>;
  struct Callbacks {
    boost::asio::io_context& loop;
    AddressPtr self;
    /// The loop: a connection to a node of this machine; its objects' messages are given to
    /// on_message.
    std::function<void(Connected)> connect;
    /// The loop: what processes that have ended wrote for this one.
    std::function<void(const std::vector<store::ObjectId>&)> orphaned = {};
    /// The loop: node_ended() is to be called once that node has.
    std::function<void(NodeId node)> watch_node = {};
    transport::ClientOptions to_nodes = {};  ///< how it proves itself to nodes of other machines
  };
  explicit StoreLink(Callbacks callbacks);
  ~StoreLink();

  // ---- any thread
  /// False: none, as far as is known.
  bool may_be() const {
    return stage_.load(std::memory_order_acquire) != Stage::None || Clock::now() >= ask_again();
  }
  /// Blocks. nullptr: there is none on this machine. The client lives as long as this.
  store::Client* client();
  /// `done`: on the loop, or within.
  void view(const store::Wanted& wanted, OnFetched done);
  void free(const store::Wanted& place);
  /// Of the store that this client is one of, for others.
  AddressPtr address_of(const store::Client& client) const;

  // ---- the loop's
  /// Has it brought to this node's memory ahead of who will look at it, and holds it no more than
  /// any view that was dropped: memory that others wait for is not taken by calls whose turn has
  /// not come.
  void prefetch(const store::Wanted& wanted);
  /// False: it is not of the store.
  bool on_message(const transport::ConnectionPtr& from, wire::Message::Reader message);
  void closed(const std::string& why);
  /// The head says so, also of a node that stands still with its connections open.
  void node_lost(NodeId node, const std::string& why);
  /// What was said to the node is with it before what is sent to others from now on.
  void flush() {
    if (connection_) connection_->flush();
  }
  void node_ended(NodeId node) { remote_.node_ended(node); }
  /// This process leaves its cluster: what it would still free goes with its job, and it looks
  /// nowhere else for values.
  void leave() {
    leaving_ = true;
    remote_.leave();
  }

 private:
  enum class Stage : int { Unused, Asking, Attached, None };
  using Then = std::function<void(store::Client*)>;

  Clock::time_point ask_again() const {
    return Clock::time_point(Clock::duration(ask_again_.load()));
  }
  void attach(Then then);
  void attached(const transport::ConnectionPtr& from, wire::ObjectAttached::Reader answer);
  void on_orphans(capnp::List<wire::ObjectKey>::Reader orphans);
  void do_without(const std::string& why);
  void settle(Stage stage, store::Client* client);
  void note_numbers();

  Callbacks callbacks_;
  std::atomic<Stage> stage_{Stage::Unused};
  std::atomic<store::Client*> client_{nullptr};
  std::atomic<Clock::rep> ask_again_{0};

  mutable std::mutex addresses_mutex_;
  std::vector<std::pair<const store::Client*, AddressPtr>> addresses_;  // one for each client

  // the loop's
  RemoteStores remote_;
  std::vector<Then> waiting_;
  transport::ConnectionPtr connection_;
  NodeId node_{};         // at its other end
  std::string last_why_;  // it went without the store
  bool leaving_ = false;
  std::vector<std::unique_ptr<store::Client>> clients_;  // the last one may be in use
  // Of all clients and sessions: names do not come again.
  static inline std::atomic<std::uint64_t> last_object_{0};
};

}  // namespace troupe::runtime
