#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "head/identity.hpp"
#include "head/returns/node_probe.hpp"
#include "head/routes.hpp"

namespace troupe::head {

/// What becomes of a node whose connection to the head has ended: the node may live, and connects
/// again. Meanwhile its processes keep what they have, and what the head says to it waits in its
/// line. Belongs to the head's loop.
///
///   [connected] --the connection ends--> [absent: its process is asked for]   --nodeResume--> [connected]
///        |                                  |--its process has ended--> [gone]
///        |                                  `--nothing heard for HeadOptions::node_silence--> [gone]
///        |--nodeLeaves, or a node that cannot come back; then the connection ends--> [gone]
///        `--nodeResume: the connection before was half-open--> [connected]
///
///   1. A node whose process has ended is gone as soon as its host says so, not after a silence.
///   2. A node that is gone does not come back: a nodeResume of it is answered with the reason.
///   3. Only who has the secret of its nodeJoined resumes a node.
class NodeReturns {
 public:
  struct Callbacks {
    std::function<void(NodeId, scheduler::Incarnation, const std::string& why)> node_gone;
    std::function<void(const std::string&)> log;
  };

  NodeReturns(boost::asio::io_context& loop, const Identity& identity, Routes& routes,
              const transport::Secret& token, std::chrono::milliseconds node_silence,
              Callbacks callbacks)
      : loop_(loop),
        identity_(identity),
        routes_(routes),
        token_(token),
        node_silence_(node_silence),
        callbacks_(std::move(callbacks)) {}

  void on_broken(NodeId node, scheduler::Incarnation incarnation, const std::string& why);
  /// The first message of a connection. It is carried on by the node's line, or finished.
  void on_resume(const transport::ConnectionPtr& connection, wire::NodeResume::Reader resume);
  /// The head listens no more: who is absent cannot come back.
  void give_up();
  /// To be called now and then: of nodes that were lost otherwise nothing is asked any more.
  void tick();

 private:
  void ask_for(NodeId node, const Routes::Node& known, const std::string& why);
  std::string why_not_resumed(wire::NodeResume::Reader resume);

  boost::asio::io_context& loop_;
  const Identity& identity_;
  Routes& routes_;
  const transport::Secret token_;
  const std::chrono::milliseconds node_silence_;
  const Callbacks callbacks_;
  std::map<NodeId, std::shared_ptr<NodeProbe>> probes_;  // of those that are absent
  bool has_given_up_ = false;
};

}  // namespace troupe::head
