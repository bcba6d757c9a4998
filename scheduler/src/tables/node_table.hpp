#pragma once

#include <vector>

#include <troupe/scheduler/events.hpp>

#include "tables/free_index.hpp"
#include "tables/model.hpp"
#include "tables/records.hpp"

namespace troupe::scheduler {

/// The nodes, what is free on them, and which of them can take more than when the waiting requests
/// were last looked at. Every change of what is free goes through here, so that the indices are
/// right. What is free in the index of it is brought up to date when somebody looks: where a queue
/// waits, what a lease gives back the next one takes at once.
class NodeTable {
 public:
  Node& add(const NodeJoined& joined);
  void remove(NodeId node);
  /// nullptr if there is none.
  Node* find(NodeId node) const { return nodes_.find(node); }
  /// In the order of their ids.
  std::vector<const Node*> all() const;
  std::size_t size() const { return nodes_.size(); }
  bool empty() const { return size() == 0; }

  Share take(Node& node, const Resources& need) {
    changed(node);
    return node.free.take(need);
  }
  void give(Node& node, const Share& share) {
    node.free.give(share);
    changed(node);
    touch(node);
  }
  void take_cpu(Node& node, Amount amount);
  void give_cpu(Node& node, Amount amount);

  /// Something that kept requests off the node has changed.
  void touch(Node& node) {
    if (node.touched) return;
    node.touched = true;
    touched_.push_back(&node);
  }
  void touch(const std::vector<Node*>& nodes) {
    for (auto* node : nodes) touch(*node);
  }
  bool has_touched() const { return !touched_.empty(); }
  /// In the order of their ids.
  const std::vector<Node*>& touched() {
    if (touched_.size() > 1) sort_touched();
    return touched_;
  }
  /// The same, moved to `nodes`.
  void take_touched(std::vector<Node*>& nodes) {
    nodes.clear();
    touched();
    nodes.swap(touched_);
    for (auto* node : nodes) node->touched = false;
  }

  const FreeIndex& by_free() const;
  const FreeIndex& by_total() const { return by_total_; }
  /// What all nodes have together.
  const Resources& total() const { return total_; }

  static Candidate candidate(const Node& node, const Capacity& free) {
    return {node.id, &node.name, &node.labels, &free, &node.idle, node.light_load()};
  }
  /// All nodes with what is free now.
  std::vector<Candidate> candidates() const;

 private:
  void sort_touched();
  void changed(Node& node) {
    if (node.stale) return;
    node.stale = true;
    stale_.push_back(&node);
  }

  Records<NodeId, Node> nodes_;
  mutable FreeIndex by_free_;
  mutable std::vector<Node*> stale_;  // not yet right in by_free_
  FreeIndex by_total_;
  Resources total_;
  std::vector<Node*> touched_;
};

}  // namespace troupe::scheduler
