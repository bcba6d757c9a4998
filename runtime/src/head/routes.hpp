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

#include "ids/address.hpp"
#include "transport/connection.hpp"

namespace troupe::head {

using runtime::AddressPtr;
using runtime::ProcessId;

/// Which connection leads to which node and process, and what the head knows of each. Belongs to
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
    transport::ConnectionPtr connection;
    std::uint64_t incarnation = 0;
    std::string name;
    AddressPtr store = {};         // its object store
    std::set<std::uint64_t> jobs;  // announced to it
    std::chrono::steady_clock::time_point heard;
    std::optional<StoreUsage> usage = {};  // none: nobody has used its object store yet
  };
  struct Process {
    std::uint32_t node = 0;  // 0: a driver
    std::uint64_t job = 0;
    AddressPtr address;  // nullptr until it is ready
    std::uint32_t pid = 0;
  };
  struct Job {
    transport::ConnectionPtr connection;
    std::function<void(wire::JobStarted::Builder)> announcement;
    std::chrono::steady_clock::time_point heard;
    bool is_silent = false;  // it was said that its driver is
  };
  using FillTell = std::function<void(wire::HeadNotice::Builder)>;

  void add_node(std::uint32_t id, Node node) { nodes_[id] = std::move(node); }
  void remove_node(std::uint32_t id) { nodes_.erase(id); }
  Node* node(std::uint32_t id);
  std::map<std::uint32_t, Node>& nodes() { return nodes_; }

  void add_job(std::uint64_t id, Job job) { jobs_[id] = std::move(job); }
  void remove_job(std::uint64_t id);
  std::map<std::uint64_t, Job>& jobs() { return jobs_; }

  void add_process(ProcessId id, Process process) { processes_[id] = std::move(process); }
  std::size_t processes() const { return processes_.size(); }
  void remove_process(ProcessId id) { processes_.erase(id); }
  Process* process(ProcessId id);
  const Process* process(ProcessId id) const { return const_cast<Routes*>(this)->process(id); }
  std::vector<ProcessId> processes_of_node(std::uint32_t node) const;

  /// A tell to a driver, or to a worker process by way of its node. Lost where there is no way.
  void tell(ProcessId to, std::uint64_t ask, const FillTell& fill);
  void start_process(std::uint32_t node, ProcessId process, std::uint64_t job,
                     const std::vector<std::uint32_t>& gpus);
  void stop_process(std::uint32_t node, ProcessId process, const std::string& why);
  /// To every node and driver: those processes have ended with their node.
  void node_lost(std::uint32_t node, const std::vector<ProcessId>& processes,
                 const std::string& what);
  void shutdown(const std::string& why);

 private:
  std::map<std::uint32_t, Node> nodes_;
  std::map<std::uint64_t, Job> jobs_;
  std::unordered_map<ProcessId, Process> processes_;
};

}  // namespace troupe::head
