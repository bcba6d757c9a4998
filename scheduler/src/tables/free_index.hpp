#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

/// Nodes in the order of how much they have of each resource, so that a request looks only at nodes
/// that may fit, the fullest or the emptiest first, and by the resource of its need that the fewest
/// nodes have. Cost of an update: O(names * log nodes).
class FreeIndex {
 public:
  /// Adds the node where it is new.
  void update(NodeId node, const Resources& amounts);
  void remove(NodeId node);

  /// Nodes that have enough of the scarcest name in `need`, from the one that has least of it.
  /// `visit` returns whether to go on.
  template <class Visit>
  void ascending(const Resources& need, Visit&& visit) const {
    const auto [order, least] = scarcest(need);
    if (order == nullptr) return;
    for (auto at = order->lower_bound({least, NodeId{}}); at != order->end() && visit(at->second);)
      ++at;
  }

  /// The same from the one that has most of it.
  template <class Visit>
  void descending(const Resources& need, Visit&& visit) const {
    const auto [order, least] = scarcest(need);
    if (order == nullptr) return;
    for (auto at = order->rbegin(); at != order->rend() && at->first >= least && visit(at->second);)
      ++at;
  }

 private:
  using Order = std::set<std::pair<Amount, NodeId>>;

  /// nullptr where no node has some name at all.
  std::pair<const Order*, Amount> scarcest(const Resources& need) const;
  void enter(std::string_view name, Amount amount, NodeId node);
  void move(std::string_view name, Amount from, Amount to, NodeId node);
  void leave(std::string_view name, Amount amount, NodeId node);

  Order everyone_;  // for a need of nothing
  std::map<std::string, Order, std::less<>> by_name_;
  std::unordered_map<NodeId, Resources> known_;
};

}  // namespace troupe::scheduler
