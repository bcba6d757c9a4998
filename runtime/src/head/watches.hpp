#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

namespace troupe::head {

/// Which nodes have to learn when something has ended: a process elsewhere that owns objects on
/// them, or another node. A value.
class Watches {
 public:
  void add(std::uint64_t watched, std::uint32_t node) { nodes_[watched].insert(node); }
  /// -> who is to be told; nobody a second time.
  std::set<std::uint32_t> ended(std::uint64_t watched) {
    auto found = nodes_.extract(watched);
    return found.empty() ? std::set<std::uint32_t>() : std::move(found.mapped());
  }
  void node_lost(std::uint32_t node) {
    for (auto& [watched, nodes] : nodes_) nodes.erase(node);
    std::erase_if(nodes_, [](const auto& watched) { return watched.second.empty(); });
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::set<std::uint32_t>> nodes_;
};

}  // namespace troupe::head
