#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/scheduler/effects.hpp>

#include "ids/address.hpp"
#include "ids/ids.hpp"
#include "transport/connection.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/stream/resumable_line.hpp"

namespace troupe::head {

using runtime::ActorId;
using runtime::AddressPtr;
using runtime::GangId;
using runtime::HeadRequestId;
using runtime::JobId;
using runtime::LeaseId;
using runtime::NodeId;
using runtime::ProcessId;

/// Which line or connection leads to which node and process, and what the head knows of each. Belongs to
/// the head's loop.
class Routes {
 public:
  /// Bytes, as the node said last. See wire::StoreUsage.
  struct StoreUsage {
    std::uint64_t capacity = 0;
    std::uint64_t used = 0;
    std::uint64_t pinned = 0;
    std::uint64_t kept = 0;
    std::uint64_t spilled = 0;
    std::uint64_t objects = 0;
  };
  struct Node {
    transport::LinePtr line;
    scheduler::Incarnation incarnation{};
    std::string name;
    std::string host;       // where its processes listen
    AddressPtr store = {};  // its object store
    std::string logs = {};  // the folder of its processes' log files; empty: none
    std::string machine = {};
    bool offers_all_cpus = false;  // of its machine
    std::set<JobId> jobs;          // announced to it
    std::chrono::steady_clock::time_point heard;
    /// The last heartbeat: the node has said by then what it knew when it sent that.
    std::chrono::steady_clock::time_point beat = heard;
    bool returned = false;                 // through a new connection, since that heartbeat
    std::optional<StoreUsage> usage = {};  // none: nobody has used its object store yet
    transport::Bytes32 secret{};           // where its line is resumable: for who resumes it
    bool leaves = false;                   // as it has said: the end of its connection is its own
  };
  struct Process {
    NodeId node{};  // none: a driver
    JobId job{};
    AddressPtr address;  // nullptr until it is ready
    std::uint32_t pid = 0;
  };
  struct Job {
    transport::ConnectionPtr connection;  // nullptr: that of a detached actor, without a driver
    std::function<void(wire::JobStarted::Builder)> announcement;
    bool shows_output = true;  // of its worker processes, at its driver
    std::chrono::steady_clock::time_point heard;
    bool is_silent = false;  // it was said that its driver is
  };
  using FillTell = std::function<void(wire::HeadNotice::Builder)>;

  void add_node(NodeId id, Node node) { nodes_[id] = std::move(node); }
  void remove_node(NodeId id) { nodes_.erase(id); }
  Node* node(NodeId id);
  std::map<NodeId, Node>& nodes() { return nodes_; }

  void add_job(JobId id, Job job) { jobs_[id] = std::move(job); }
  void remove_job(JobId id);
  std::map<JobId, Job>& jobs() { return jobs_; }
  const std::map<JobId, Job>& jobs() const { return jobs_; }

  void add_process(ProcessId id, Process process) { processes_[id] = std::move(process); }
  std::size_t processes() const { return processes_.size(); }
  void remove_process(ProcessId id) { processes_.erase(id); }
  Process* process(ProcessId id);
  const Process* process(ProcessId id) const { return const_cast<Routes*>(this)->process(id); }
  std::vector<ProcessId> processes_of_node(NodeId node) const;
  bool has_process_of(JobId job) const;

  /// A tell to a driver, or to a worker process by way of its node. Lost where there is no way.
  void tell(ProcessId to, HeadRequestId ask, const FillTell& fill);
  void start_process(const scheduler::StartProcess& effect);
  void stop_process(NodeId node, ProcessId process, const std::string& why);
  /// To every node and driver: those processes have ended with their node.
  void node_lost(NodeId node, const std::vector<ProcessId>& processes, const std::string& what);
  void shutdown(const std::string& why);

 private:
  std::map<NodeId, Node> nodes_;
  std::map<JobId, Job> jobs_;
  std::unordered_map<ProcessId, Process> processes_;
};

}  // namespace troupe::head
