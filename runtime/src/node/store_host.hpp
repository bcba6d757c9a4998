#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "ids/address.hpp"
#include "ids/ids.hpp"
#include "store/service/service.hpp"
#include "transfer/exchange.hpp"
#include "transport/connection.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/socket/acceptor.hpp"
#include "transport/socket/listeners.hpp"

namespace troupe::node {

using runtime::JobId;
using runtime::NodeId;
using runtime::ProcessId;

/// A node's object store and who uses it: its worker processes, through the sockets that they were
/// born with; the drivers of this machine, who connect; other nodes, and drivers of machines
/// without one, who fetch what is here. The store itself is made for the first of them. Belongs to
/// the node's loop.
class StoreHost {
 public:
  struct Callbacks {
    boost::asio::io_context& loop;
    store::ServiceOptions options;
    transport::Secret token{};  ///< of the cluster
    std::string cluster;
    std::string host;  ///< where it listens
    std::string machine;
    std::function<void(transport::Outgoing&)> to_head;
  };
  /// Listens from now on. Throws Refused.
  explicit StoreHost(Callbacks callbacks);
  ~StoreHost();

  void set_node(NodeId node) { address_.node = node; }
  /// For other nodes and drivers; process 0.
  const runtime::Address& address() const { return address_; }

  /// A message of a worker process. False: it is not of the store. `violated`: it cannot be trusted
  /// any more.
  bool on_message(ProcessId process, JobId job, const transport::ConnectionPtr& link,
                  wire::Message::Reader message, store::Service::OnViolation violated);
  /// False: the head's message is not of the store.
  bool on_head_message(wire::Message::Reader message);
  /// The process has ended.
  void ended(ProcessId process);
  void job_ended(JobId job);
  /// Answers `troupe list objects`: the first objects by size, at most `most` and 10,000 of them.
  void list_objects(std::uint64_t most, wire::LogReply::Builder reply) const;
  /// nullopt: nobody has used the store yet.
  std::optional<store::Statistics> statistics() const;
  /// Nothing is kept, nobody is heard any more.
  void close();

 private:
  void accept(transport::Socket socket);
  void hold(const transport::ConnectionPtr& head);
  void adopt(const transport::ConnectionPtr& driver, const transport::Caller& caller);
  void on_driver_message(const transport::ConnectionPtr& from, const transport::Caller& caller,
                         wire::Message::Reader message);
  void attach(ProcessId process, JobId job, const transport::ConnectionPtr& link,
              store::Service::OnViolation violated);
  void attach_driver(const transport::ConnectionPtr& from, const transport::Caller& caller);
  void drop_driver(ProcessId process);
  static void decline(transport::Connection& link, const std::string& why);
  store::Service& service();
  transfer::Exchange& exchange();

  Callbacks callbacks_;
  runtime::Address address_;
  runtime::Listeners listeners_;
  std::optional<transport::Acceptor> acceptor_;
  std::unique_ptr<store::Service> service_;
  // Made with it, gone before it.
  std::unique_ptr<transfer::Exchange> exchange_;
  // Processes, attached or not yet.
  std::set<transport::ConnectionPtr> callers_;
  std::unordered_map<ProcessId, transport::ConnectionPtr> drivers_;  // attached
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::node
