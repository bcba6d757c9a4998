#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <troupe/errors.hpp>

#include "ids/address.hpp"
#include "ids/ids.hpp"
#include "node/guard/reaper.hpp"
#include "node/limits/memory_kills.hpp"
#include "node/output/call_traces.hpp"
#include "node/spawn/launcher.hpp"
#include "transport/connection.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::node {

using runtime::JobId;
using runtime::NodeId;
using runtime::ProcessId;

class OutputTail;
class StoreHost;

struct WorkersOptions {
  std::string where;      ///< this node, for messages
  std::string node_name;  ///< of what its processes have run
  /// One file for each worker process; empty: inherited.
  std::string log_directory;
  std::function<void()> restore_logs = {};       ///< makes that folder again where it was removed
  std::chrono::milliseconds start_limit{10000};  ///< of one that is executed, up to troupe::init
  /// For a process without its link, to end by itself.
  std::chrono::milliseconds link_grace{1000};
  transport::Secret token{};  ///< of the cluster, for those to whom it was granted
};

/// What a worker process is told about itself, besides its number.
struct WorkerSetup {
  JobId job{};
  transport::Secret job_key{};
  std::string cluster;
  NodeId node{};
  std::string host;
  bool shows_output = false;  ///< its driver wants to be sent what it prints
  std::uint32_t threads = 1;  ///< that libraries may use in it
};

/// The worker processes of a node: starts them, talks to them, reaps them, says how they ended.
/// Lives on the node's loop.
///
///   [starting] --launched--> [running] --ended--> gone, after one processExited
///       --cannot be--> gone, after one processExited
///
/// Where a process ends before it is ready, the failure says why, in its own words or in the last
/// lines of its log, and so does the log of the node.
class Workers {
 public:
  /// Takes a message for the head.
  using ToHead = std::function<void(transport::Outgoing&)>;

  Workers(asio::io_context& loop, Reaper& reaper, WorkersOptions options, ToHead to_head);
  ~Workers();

  /// Before the first start: worker processes print where this program does.
  void without_logs() { options_.log_directory.clear(); }
  void start(ProcessId process, WorkerSetup setup, std::vector<std::string> environment,
             std::shared_ptr<Launcher> launcher);
  /// SIGKILL at once, to it and its process group. What it left in other sessions follows.
  void stop(ProcessId process, const std::string& why);
  void stop_job(JobId job, const std::string& why);
  /// Tells all of them that the cluster is being stopped.
  void tell_shutdown(const std::string& why);
  /// Tells all of them which processes ended with another node.
  void tell_node_lost(wire::NodeLost::Reader lost);
  /// To be called every second or so: looks whether the machine runs out of memory.
  void look_at_memory() { memory_kills_.look(MemoryKills::Clock::now()); }
  /// SIGTERM to all of them, for those that want to hear it; those that are still being started are
  /// ended once they are there.
  void terminate_all(const std::string& why);
  void stop_all(const std::string& why);
  /// Passes on what the head told; dropped where the process is gone.
  void tell(ProcessId process, wire::HeadNotice::Reader tell);

  /// Where the messages of its processes for the object store go from now on; nullptr: nowhere.
  void use_store(StoreHost* store) { store_ = store; }

  /// Where what its processes print is sent from; nullptr: nowhere.
  void use_output(OutputTail* output) { output_ = output; }

  /// SIGKILL to the children of this process that were started in a worker process which is no
  /// more. -> how many.
  std::size_t end_orphans();

  /// By this node, at whatever time.
  bool was_started(ProcessId process) const {
    return std::ranges::binary_search(started_, process);
  }
  bool runs(ProcessId process) const { return workers_.contains(process); }
  bool empty() const { return workers_.empty(); }
  /// What those that are there have run, for `troupe timeline`.
  LiveTraces traces() const;
  void on_empty(std::function<void()> empty) { on_empty_ = std::move(empty); }

 private:
  struct Worker;
  using WorkerPtr = std::shared_ptr<Worker>;

  void launch(const WorkerPtr& worker);
  os::UniqueFd open_link(const WorkerPtr& worker);
  void configure(Worker& worker);
  void follow_output(const WorkerPtr& worker, const std::string& log);
  void on_launched(const WorkerPtr& worker, LaunchResult result);
  void on_running(const WorkerPtr& worker, const Launched& launched);
  void on_message(Worker& worker, wire::Message::Reader message);
  void tell_ready(Worker& worker, const runtime::Address& address);
  void on_ready(Worker& worker, wire::ProcessReady::Reader ready);
  bool pass_to_store(Worker& worker, wire::Message::Reader message);
  void on_given_up(Worker& worker, wire::ProcessExited::Reader exited);
  void on_link_closed(const WorkerPtr& worker);
  void kill_after(const WorkerPtr& worker, std::chrono::milliseconds time, std::string why);
  void on_ended(const WorkerPtr& worker, int status);
  void report(Worker& worker, const Failure& failure);
  Failure describe_end(const Worker& worker, int status) const;
  std::string memory_ran_out(const Worker& worker, int status);
  std::optional<runtime::CallTrace> trace_of(const Worker& worker, bool only_running) const;
  void save_trace(const Worker& worker) const;
  void log_failed_start(const Worker& worker, const Failure& failure);

  asio::io_context& loop_;
  Reaper& reaper_;
  WorkersOptions options_;
  MemoryKills memory_kills_;
  ToHead to_head_;
  StoreHost* store_ = nullptr;
  OutputTail* output_ = nullptr;
  const std::string machine_;
  std::function<void()> on_empty_;
  std::unordered_map<ProcessId, WorkerPtr> workers_;
  std::vector<ProcessId> started_;  // sorted; of the files of a folder, those that are this node's
  std::string last_failed_start_;   // of the log: many starts may fail for one reason
};

}  // namespace troupe::node
