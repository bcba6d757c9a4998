#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "ids/ids.hpp"

namespace troupe::head {

using runtime::NodeId;

/// Which nodes have to learn when something has ended: a process elsewhere that owns objects on
/// them, or another node. A value.
template <class Watched>
class Watches {
 public:
  void add(Watched watched, NodeId node) { nodes_[watched].insert(node); }
  /// -> who is to be told; nobody a second time.
  std::set<NodeId> ended(Watched watched) {
    auto found = nodes_.extract(watched);
    return found.empty() ? std::set<NodeId>() : std::move(found.mapped());
  }
  void node_lost(NodeId node) {
    for (auto& [watched, nodes] : nodes_) nodes.erase(node);
    std::erase_if(nodes_, [](const auto& watched) { return watched.second.empty(); });
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::unordered_map<Watched, std::set<NodeId>> nodes_;
};

}  // namespace troupe::head
