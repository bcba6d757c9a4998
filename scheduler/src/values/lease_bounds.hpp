#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// How many worker processes with a lease a node may have: tasks that wait for tasks lend their
/// CPUs, and would otherwise fill a node with processes. A small class beside the nodes, which
/// counts those that have all that they may.
///
/// 1. A node counts its worker processes with a lease.
/// 2. How many nodes are at their bound is counted over all nodes that are there.
///
/// Cost: O(1).
class LeaseBounds {
 public:
  explicit LeaseBounds(std::size_t processes_per_cpu) : processes_per_cpu_{processes_per_cpu} {}

  bool is_at_bound(const Node& node) const { return node.lease_processes >= bound(node); }
  bool any_at_bound() const { return nodes_at_bound_ > 0; }

  /// One of the node's worker processes has a lease from now on; more than the bound may, as it is
  /// asked for before.
  void add(Node& node) {
    if (++node.lease_processes == bound(node)) ++nodes_at_bound_;
  }
  void remove(Node& node) {
    if (node.lease_processes-- == bound(node)) --nodes_at_bound_;
  }
  void on_node_joined(const Node& node) { nodes_at_bound_ += is_at_bound(node) ? 1 : 0; }
  void on_node_lost(const Node& node) { nodes_at_bound_ -= is_at_bound(node) ? 1 : 0; }

  /// `nodes`: all of them. Cost: O(processes).
  std::optional<std::string> broken_invariant(const std::vector<const Node*>& nodes) const;

 private:
  std::size_t bound(const Node& node) const { return node.cpus * processes_per_cpu_; }

  std::size_t processes_per_cpu_;
  std::size_t nodes_at_bound_ = 0;
};

}  // namespace troupe::scheduler
