#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

namespace troupe::head {

/// Which nodes hold objects that processes elsewhere own, and have to learn when such a process has ended. A value.
class OwnerWatches {
 public:
  void add(std::uint64_t process, std::uint32_t node) { nodes_[process].insert(node); }
  /// -> who is to be told; nobody a second time.
  std::set<std::uint32_t> ended(std::uint64_t process) {
    auto found = nodes_.extract(process);
    return found.empty() ? std::set<std::uint32_t>() : std::move(found.mapped());
  }
  void node_lost(std::uint32_t node) {
    for (auto& [process, nodes] : nodes_) nodes.erase(node);
    std::erase_if(nodes_, [](const auto& watched) { return watched.second.empty(); });
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::set<std::uint32_t>> nodes_;
};

}  // namespace troupe::head
