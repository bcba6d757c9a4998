#include "node_table.hpp"

#include <algorithm>

namespace troupe::scheduler {

Node& NodeTable::add(const NodeJoined& joined) {
  auto& node = nodes_[joined.node];
  index_[joined.node] = &node;
  node.id = joined.node;
  node.incarnation = joined.incarnation;
  node.name = joined.name;
  node.labels = joined.labels;
  std::ranges::sort(node.labels);
  node.idle = Capacity{joined.total, joined.gpus};
  node.free = node.idle;
  by_free_.update(node.id, node.free.amounts());
  by_total_.update(node.id, node.idle.amounts());
  touched_.insert(node.id);
  return node;
}

void NodeTable::remove(NodeId node) {
  by_free_.remove(node);
  by_total_.remove(node);
  touched_.erase(node);
  index_.erase(node);
  nodes_.erase(node);
}

Node* NodeTable::find(NodeId node) {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : found->second;
}

const Node* NodeTable::find(NodeId node) const {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : found->second;
}

Share NodeTable::take(Node& node, const Resources& need) {
  auto share = node.free.take(need);
  by_free_.update(node.id, node.free.amounts());
  return share;
}

void NodeTable::give(Node& node, const Share& share) {
  node.free.give(share);
  by_free_.update(node.id, node.free.amounts());
  touch(node);
}

void NodeTable::take_cpu(Node& node, Amount amount) {
  node.free.take_cpu(amount);
  by_free_.update(node.id, node.free.amounts());
}

void NodeTable::give_cpu(Node& node, Amount amount) {
  node.free.give_cpu(amount);
  by_free_.update(node.id, node.free.amounts());
  touch(node);
}

Candidate NodeTable::candidate(const Node& node, const Capacity& free) {
  return {node.id, node.name, &node.labels, &free, &node.idle};
}

std::vector<Candidate> NodeTable::candidates() const {
  std::vector<Candidate> all;
  all.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) all.push_back(candidate(node, node.free));
  return all;
}

}  // namespace troupe::scheduler
