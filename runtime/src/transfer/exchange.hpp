#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "ids/ids.hpp"
#include "store/service/remote_store_client.hpp"
#include "store/service/service.hpp"
#include "transfer/links.hpp"
#include "transfer/loop_thread.hpp"
#include "transfer/pull.hpp"
#include "transfer/sending.hpp"

namespace troupe::transfer {

using runtime::NodeId;

struct ExchangeOptions {
  std::string cluster;
  transport::Secret token{};
  /// Where other nodes reach this one: who listens there calls Exchange::accept.
  store::NodeAddress self = {};
  std::size_t receivers = 2;      ///< of one object at a time, before more of them are sent on
  std::size_t most_sent = 256;    ///< objects that are sent at a time; more are told to come again
  std::size_t most_fetched = 64;  ///< objects that are brought here at a time; more wait
  PullOptions pull = {};          ///< its times; the rest is filled in
  SendingOptions sending = {};
};

/// Brings objects here from other nodes, and sends them there. Lives in the node, on its loop; the
/// bytes are moved by two threads beside it, one for each direction. The service outlives it.
///
///   a get of what another node has                         a request of another node
///     Service: memory for a copy                             this object is sent to 2 already, and others have it, or
///     fetch ---> Pull (its thread) ---> the node that        will: sent on to one of those
///                  |                    wrote it, or to      else: Sending (its thread), from the arena, or while it
///                  v verified           whom that sends on   comes, as far as it has come
///     Service::copied: who waits is answered
///
/// So many receivers make a tree, in which each node passes on what it has while the rest is on its
/// way. A receiver whose node in the tree fails goes back to where the object was written, and is
/// served there.
///
/// Free goes from the owner's node to the node where the object was written, and from there to all
/// that ever asked it, which are all that have a copy; each of these is told until it has
/// acknowledged it (Links). That an owner has ended is told by the head, which each node asks once
/// an owner, and so is the end of a node that cannot be told of a free.
class Exchange final : public store::RemoteStoreClient {
 public:
  using ToHead = std::function<void(transport::Outgoing&)>;

  Exchange(boost::asio::io_context& loop, store::Service& service, ExchangeOptions options,
           ToHead to_head);
  ~Exchange() override;  ///< waits for both threads

  /// A connection that proved the token (role node, or a driver's), or the key of its job (role
  /// process), and on which nothing was read yet.
  void accept(const transport::ConnectionPtr& connection, const transport::Caller& caller);
  /// A message that came on such a connection, of which no more has been read.
  void on_message(transport::ConnectionPtr connection, const transport::Caller& caller,
                  wire::Message::Reader message);
  /// Nothing of it is left to be freed, here or elsewhere.
  void job_ended(store::JobId job) { links_.job_ended(job); }
  /// False: the message is not for this object.
  bool on_head_message(wire::Message::Reader message);

  // ---- store::RemoteStoreClient
  void fetch(store::Copy copy) override;
  void freed(store::JobId job, store::ObjectId object, bool is_copy) override;
  void free(store::JobId job, store::ObjectId object, const store::NodeAddress& at) override;
  void watch(store::ProcessId owner) override;
  void orphaned(store::ProcessId owner, const std::vector<store::ObjectId>& objects) override;

  std::size_t sending() const { return sent_.size(); }
  std::size_t fetching() const { return fetched_.size(); }
  /// That other nodes have not acknowledged.
  std::size_t freeing() const { return links_.listed(); }

 private:
  using SentId = std::uint64_t;
  struct Request {
    store::ObjectId object;
    store::JobId job;
    std::uint64_t bytes;
    std::uint64_t from;
    store::NodeAddress receiver;
    NodeId failed;
  };
  struct Fetched {         // is being brought here
    std::uint64_t number;  // tells it from an earlier one of the same object
    store::Copy copy;
    std::shared_ptr<store::Window> window = {};
    std::shared_ptr<Pull> pull = {};  // its thread's; none: it waits for its turn
    std::uint64_t verified = 0;
    bool counts = false;  // among those that are brought at a time
  };
  struct Sent {  // is being sent
    Request request;
    std::shared_ptr<Sending> sending;  // its thread's
    bool holding = false;              // the store was asked to pin it
    bool pinned = false;
    bool ended = false;
  };
  struct Receiver {
    store::NodeAddress at;
    unsigned sent_on = 0;  // to it
    bool fit = true;       // for others to be sent on to it
  };

  // Bringing.
  void start_waiting();
  void start_pull(Fetched& fetched);
  void out_of_reach(store::ObjectId object, std::uint64_t number);
  void progressed(store::ObjectId object, std::uint64_t number, std::uint64_t verified);
  void fetch_ended(store::ObjectId object, std::uint64_t number,
                   const std::optional<store::Refusal>& failure);

  void watch_node(NodeId node);
  void node_ended(NodeId node);

  // Sending.
  void requested(const transport::ConnectionPtr& connection, const Request& request);
  std::optional<store::NodeAddress> choose_onward(const Request& request);
  void note_receiver(const Request& request);
  void set_unfit(store::ObjectId object, NodeId node);
  void send(const transport::ConnectionPtr& connection, const Request& request);
  void held(SentId id, const std::variant<store::Held, store::Refusal>& result);
  void serve(Sent& sent, const store::Held& held, std::shared_ptr<const store::Window> window,
             std::uint64_t available);
  void refuse(Sent& sent, const store::Refusal& why);
  void sent_ended(SentId id, bool complete);
  void forget(SentId id);
  /// On the sending thread.
  template <class Then>
  void for_each_sent(store::ObjectId object, Then then);

  /// Runs it on this object's loop, unless this object is gone by then. Any thread.
  template <class Then>
  void at_home(Then then);

  boost::asio::io_context& loop_;
  store::Service& service_;
  const ExchangeOptions options_;
  ToHead to_head_;
  LoopThread receiving_, sending_;
  Links links_;
  std::set<transport::ConnectionPtr> accepted_;
  std::unordered_map<store::ObjectId, Fetched> fetched_;
  std::uint64_t last_fetched_ = 0;
  std::size_t pulling_ = 0;
  std::deque<store::ObjectId> waiting_;
  std::unordered_map<SentId, Sent> sent_;
  std::unordered_map<store::ObjectId, std::vector<SentId>> sent_of_;
  SentId last_sent_ = 0;
  std::unordered_map<store::ObjectId, std::vector<Receiver>> receivers_;
  std::unordered_set<store::ProcessId> watched_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::transfer
