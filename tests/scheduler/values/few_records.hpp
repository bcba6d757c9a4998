#pragma once

#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "tables/model.hpp"

/// Records without a cluster around them, for tests of the values that the cluster is made of.
namespace troupe::scheduler::test {

class FewRecords {
 public:
  Job& job() {
    auto& job = jobs_.emplace_back();
    job.id = ++last_job_;
    return job;
  }
  Node& node(Resources total = {{"cpu", 4}}) {
    auto& node = nodes_.emplace_back();
    node.id = ++last_node_;
    node.idle = node.free = Capacity{std::move(total), 0};
    return node;
  }
  Process& process(Job& job, Node& node, ProcessState state = ProcessState::InUse) {
    auto& process = processes_.emplace_back();
    process.id = ++last_process_;
    process.job = &job;
    process.node = &node;
    process.state = state;
    node.processes.push_back(process);
    job.processes.push_back(process);
    return process;
  }

  /// For a lease, the latest of all. It is in no queue.
  Request& request(Process& requester, Resources need) {
    auto& request = requests_.emplace_back();
    request.id = ++last_request_;
    request.sequence = requests_.size();
    request.requester = &requester;
    request.shape = ShapePtr{ShapeKey{Kind::Lease, {std::move(need), {}, false}}};
    return request;
  }

  /// Granted: its process has started.
  Lease& lease(Process& requester, Process& process) {
    auto& lease = leases_.emplace_back();
    lease.id = ++last_lease_;
    lease.requester = &requester;
    lease.process = &process;
    return lease;
  }
  void remove(Lease& lease) {
    leases_.remove_if([&](const Lease& one) { return &one == &lease; });
  }
  std::vector<Lease*> leases() {
    std::vector<Lease*> all;
    for (auto& lease : leases_) all.push_back(&lease);
    return all;
  }

  std::deque<Process>& processes() { return processes_; }
  std::vector<const Node*> nodes() const {
    std::vector<const Node*> all;
    for (const auto& node : nodes_) all.push_back(&node);
    return all;
  }

 private:
  JobId last_job_{};
  NodeId last_node_{};
  ProcessId last_process_{};
  RequestId last_request_{};
  LeaseId last_lease_{};
  std::deque<Job> jobs_;
  std::deque<Node> nodes_;
  std::deque<Process> processes_;
  std::deque<Request> requests_;
  std::list<Lease> leases_;
};

}  // namespace troupe::scheduler::test
