#include "tables/node_table.hpp"

#include <algorithm>

namespace troupe::scheduler {

Node& NodeTable::add(const NodeJoined& joined) {
  auto& node = nodes_.make(joined.node);
  node.incarnation = joined.incarnation;
  node.name = joined.name;
  node.lasting_labels = joined.labels;
  std::ranges::sort(node.lasting_labels);
  node.labels = joined.labels;
  node.labels.insert(node.labels.end(), joined.own_labels.begin(), joined.own_labels.end());
  std::ranges::sort(node.labels);
  node.idle = Capacity{joined.total, joined.gpus};
  node.free = node.idle;
  node.cpus =
      std::max<std::size_t>(1, static_cast<std::size_t>(node.idle.amounts().of(kCpu).units()));
  by_free_.update(node.id, node.free.amounts());
  by_total_.update(node.id, node.idle.amounts());
  total_ += node.idle.amounts();
  touch(node);
  return node;
}

void NodeTable::remove(NodeId id) {
  auto* node = find(id);
  by_free_.remove(id);
  by_total_.remove(id);
  total_ -= node->idle.amounts();
  std::erase(touched_, node);
  std::erase(stale_, node);
  nodes_.erase(*node);
}

void NodeTable::take_cpu(Node& node, Amount amount) {
  node.free.take_cpu(amount);
  changed(node);
}

void NodeTable::give_cpu(Node& node, Amount amount) {
  node.free.give_cpu(amount);
  changed(node);
  touch(node);
}

void NodeTable::sort_touched() { std::ranges::sort(touched_, {}, &Node::id); }

const FreeIndex& NodeTable::by_free() const {
  for (auto* node : stale_) {
    by_free_.update(node->id, node->free.amounts());
    node->stale = false;
  }
  stale_.clear();
  return by_free_;
}

std::vector<const Node*> NodeTable::all() const {
  const auto found = nodes_.all();
  std::vector<const Node*> all{found.begin(), found.end()};
  std::ranges::sort(all, {}, &Node::id);
  return all;
}

std::vector<Candidate> NodeTable::candidates() const {
  std::vector<Candidate> all;
  all.reserve(nodes_.size());
  for (const auto* node : this->all()) all.push_back(candidate(*node, node->free));
  return all;
}

}  // namespace troupe::scheduler
