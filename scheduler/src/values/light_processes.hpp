#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// Light processes: worker processes in use that hold nothing, as an actor does by default, or once
/// it has given all back. What is free on a node says nothing of where the next one should go, so they
/// are counted, and each goes to the node that has the fewest in relation to its CPUs.
///
/// 1. A process is light from when a request that asked for nothing got it, or it gave all back,
///    until it has no role any more; it holds nothing.
/// 2. A node counts its light processes.
/// 3. Each node that is there stands in the order once, by its light processes in relation to its
///    CPUs and then by its id.
/// 4. A node has room for one more while it has fewer than it may for each of its CPUs. What is
///    placed without a look at that (a gang) may be above it.
///
/// Cost: O(log nodes) where nothing else is said.
class LightProcesses {
 public:
  explicit LightProcesses(std::size_t per_cpu) : per_cpu_{per_cpu} {}

  bool has_room(const Node& node) const { return node.light_processes < node.cpus * per_cpu_; }

  /// The process, which has just got its role or given all back, is light from now on.
  void add(Process& process);
  /// The process, which is light, loses its role.
  void remove(Process& process);
  void on_node_joined(const Node& node) { order_.insert(place_of(node)); }
  /// None of its processes is left.
  void on_node_lost(const Node& node) { order_.erase(place_of(node)); }

  /// The nodes in that order. `visit` returns whether to go on. Cost: O(nodes visited).
  template <class Visit>
  void fewest_first(Visit&& visit) const {
    for (auto at = order_.begin(); at != order_.end() && visit(at->node);) ++at;
  }

  /// `nodes`: all of them. Cost: O(processes).
  std::optional<std::string> broken_invariant(const std::vector<const Node*>& nodes) const;

 private:
  struct Place {
    LightLoad load;
    NodeId node{};
    friend bool operator<(const Place& a, const Place& b) {
      if (a.load < b.load) return true;
      return !(b.load < a.load) && a.node < b.node;
    }
  };
  static Place place_of(const Node& node) { return {node.light_load(), node.id}; }
  void count(Node& node, std::size_t light);

  std::size_t per_cpu_;
  std::set<Place> order_;
};

}  // namespace troupe::scheduler
