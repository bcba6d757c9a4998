#pragma once

#include <deque>
#include <vector>

#include "tables/model.hpp"

/// Records without a cluster around them, for tests of the values that the cluster is made of.
namespace troupe::scheduler::test {

class FewRecords {
 public:
  Job& job() {
    auto& job = jobs_.emplace_back();
    job.id = static_cast<JobId>(jobs_.size());
    return job;
  }
  Node& node(Resources total = {{"cpu", 4}}) {
    auto& node = nodes_.emplace_back();
    node.id = static_cast<NodeId>(nodes_.size());
    node.idle = node.free = Capacity{std::move(total), 0};
    return node;
  }
  Process& process(Job& job, Node& node, ProcessState state = ProcessState::InUse) {
    auto& process = processes_.emplace_back();
    process.id = static_cast<ProcessId>(processes_.size());
    process.job = &job;
    process.node = &node;
    process.state = state;
    node.processes.push_back(process);
    job.processes.push_back(process);
    return process;
  }

  std::deque<Process>& processes() { return processes_; }
  std::vector<const Node*> nodes() const {
    std::vector<const Node*> all;
    for (const auto& node : nodes_) all.push_back(&node);
    return all;
  }

 private:
  std::deque<Job> jobs_;
  std::deque<Node> nodes_;
  std::deque<Process> processes_;
};

}  // namespace troupe::scheduler::test
