#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const NodeJoined& event) {
  if (!event.node) return;
  auto* old = nodes_.find(event.node);
  if (old != nullptr) {
    if (event.incarnation <= old->incarnation) return;
    lose_node(*old, fmt::format("it joined again as incarnation {}", event.incarnation));
  }
  auto& node = nodes_.add(event);
  measure_jobs();
  bounds_.on_node_joined(node);
  light_.on_node_joined(node);
  departed_.came_back(node);
  for (auto* shape : queue_.shapes()) {
    if (!shape->possible) shape->possible = possible(*shape->key);
  }
  if (old != nullptr) judge_all_shapes();
}

void Cluster::on(const NodeLost& event) {
  auto* node = nodes_.find(event.node);
  if (node == nullptr || node->incarnation != event.incarnation) return;
  lose_node(*node, event.reason);
  judge_all_shapes();
}

void Cluster::lose_node(Node& node, const std::string& why) {
  node.lost = true;
  nodes_.touch(reservations_.on_node_lost(node, now_));
  const auto cause = fmt::format("{} was lost: {}", node_text(node.id), why);
  while (!node.processes.empty()) process_gone(node.processes.front(), cause, true);
  bounds_.on_node_lost(node);
  light_.on_node_lost(node);
  departed_.add(node, now_);
  nodes_.remove(node.id);
  measure_jobs();
}

}  // namespace troupe::scheduler
