#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "ids/ids.hpp"
#include "store/service/service.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::node {

using runtime::NodeId;

namespace asio = boost::asio;

struct NodeOptions {
  transport::Endpoint head;
  std::string head_advice;  ///< ends the message that the head could not be reached
  transport::Secret token{};
  std::string token_from;  ///< where it was read
  /// Where its worker processes listen and are called; empty: the one that reaches the head.
  std::string host;
  std::string name;         ///< empty: the host name
  double cpus = 0;          ///< 0: as many as this process may use, and at least one
  std::optional<int> gpus;  ///< nullopt: what NVML finds
  std::vector<std::pair<std::string, double>> resources;  ///< custom ones
  std::vector<std::pair<std::string, std::string>> labels;
  /// Stdout and stderr of its worker processes, a file each; empty: inherited.
  std::string log_directory;
  /// Where log_directory cannot be had: true: the node does not start; false: it says so, and worker
  /// processes print where it does.
  bool requires_logs = true;
  /// Of folders "node-PID" like log_directory, of which old ones are removed; empty: none are.
  std::string log_parent;
  std::size_t kept_logs = 20;  ///< so many folders of nodes that have ended stay in log_parent
  /// Programs that were shipped here, by digest; empty: one below /var/tmp for this user.
  std::string cache_directory;
  int guardian = -1;  ///< lifeline from run_under_guardian; -1: there is none, as in tests
  std::string guardian_described;
  /// Embedded: control socket of a zygote that is already there, for the one job.
  int zygote = -1;
  pid_t zygote_pid = 0;         ///< of that zygote, which must be a child of this process
  store::ServiceOptions store;  ///< the object store's limits and its directory
  /// Of shipped programs; the least recently used go first.
  std::uint64_t cache_bytes = std::uint64_t{8} << 30;
  std::chrono::milliseconds heartbeat{1000};
  /// A head that echoes no heartbeat is waited for so long, as it may stand still and go on, or the
  /// connection to it has broken and is made again; then the node ends its processes and itself.
  /// That the head has ended is noticed sooner: nothing listens at its address. A head that takes
  /// the connection and says nothing is tried again for so long before this node has joined, three
  /// times at least.
  std::chrono::milliseconds head_silence{60'000};
  /// From the start of a program to its troupe::init.
  std::chrono::milliseconds program_start{60000};
  /// From SIGTERM to SIGKILL, when the whole node stops.
  std::chrono::milliseconds stop_grace{200};
};

/// One machine's agent: joins the head, starts worker processes when the head says so, reaps them
/// and reports how they ended, relays what they ask of the head. It ends what they have started and
/// left, and itself once its guardian is gone. Lives on one loop, whose thread forks and must live
/// as long as the node.
///
///   [new] --start--> [joining] --welcome--> [joined] --head gone / shutdown / stop()--> [stopping]
///   [stopping] --all reaped--> [stopped]
class Node {
 public:
  /// To be made on the first thread of its process, which ignores SIGPIPE and adopts orphans from
  /// now on. Throws Refused where the options offer what no machine has, or a host that is not an
  /// address of this machine.
  Node(asio::io_context& loop, NodeOptions options);
  ~Node();

  /// `joined` is called once with the number the head gave; `stopped` once, whenever the node is
  /// down, with the reason (for the terminal) and whether it is a failure. Every process that it
  /// started is gone by then.
  void start(std::function<void(NodeId node)> joined,
             std::function<void(std::string why, bool failed)> stopped);
  void stop(std::string why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::node
