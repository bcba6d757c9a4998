#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const NodeJoined& event) {
  if (event.node == 0) return;
  auto* old = nodes_.find(event.node);
  if (old != nullptr) {
    if (event.incarnation <= old->incarnation) return;
    lose_node(*old, fmt::format("it joined again as incarnation {}", event.incarnation));
  }
  if (at_lease_bound(nodes_.add(event))) ++bounded_nodes_;
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
  for (const auto claims = node.claims; const auto& [id, claim] : claims) {
    auto& request = requests_.at(id);
    lift(request);
    request.reservation->until = now_;
  }
  const auto cause = fmt::format("{} was lost: {}", node_text(node.id), why);
  while (!node.processes.empty()) process_gone(node.processes.front(), cause, true);
  if (at_lease_bound(node)) --bounded_nodes_;
  nodes_.remove(node.id);
}

void Cluster::judge_all_shapes() {
  for (auto* shape : queue_.shapes()) {
    if (!shape->possible || possible(*shape->key)) continue;
    shape->possible = false;
    const auto because = impossible_because(*shape->key);
    for (auto* request : shape->everyone()) {
      if (nodes_.empty()) {
        request->patient_until = now_ + options_.join_patience;
      } else if (request->patient_until <= now_) {
        refuse(*request, Refused::Kind::Impossible, because);
      }
    }
  }
}

}  // namespace troupe::scheduler
