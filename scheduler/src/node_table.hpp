#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/scheduler/events.hpp>

#include "free_index.hpp"
#include "model.hpp"

namespace troupe::scheduler {

/// The nodes, what is free on them, and which of them can take more than when the waiting requests were last looked at.
/// Every change of what is free goes through here, so that the indices are right.
class NodeTable {
 public:
  Node& add(const NodeJoined& joined);
  void remove(NodeId node);
  Node* find(NodeId node);
  const Node* find(NodeId node) const;
  const std::map<NodeId, Node>& all() const { return nodes_; }
  bool empty() const { return nodes_.empty(); }

  Share take(Node& node, const Resources& need);
  void give(Node& node, const Share& share);
  void take_cpu(Node& node, Amount amount);
  void give_cpu(Node& node, Amount amount);

  /// Something that kept requests off the node has changed.
  void touch(const Node& node) { touched_.insert(node.id); }
  const std::set<NodeId>& touched() const { return touched_; }
  std::set<NodeId> take_touched() { return std::exchange(touched_, {}); }

  const FreeIndex& by_free() const { return by_free_; }
  const FreeIndex& by_total() const { return by_total_; }

  static Candidate candidate(const Node& node, const Capacity& free);
  /// All nodes with what is free now.
  std::vector<Candidate> candidates() const;

 private:
  std::map<NodeId, Node> nodes_;
  std::unordered_map<NodeId, Node*> index_;  // of nodes_, which is walked in order
  FreeIndex by_free_;
  FreeIndex by_total_;
  std::set<NodeId> touched_;
};

}  // namespace troupe::scheduler
