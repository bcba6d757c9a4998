#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include <troupe/scheduler/ids.hpp>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// A node that has left, as it was when nothing ran on it.
struct DepartedNode {
  NodeId node{};
  std::string name;
  Labels labels;  ///< without those that were its own alone
  Capacity idle;
  TimePoint left{};
};

/// The nodes that have left a short while ago and may come back, the latest first. A value; holds
/// `most` at most.
class Departed {
 public:
  explicit Departed(std::size_t most) : most_{most} {}

  void add(const Node& node, TimePoint now);
  /// The node is back, or another one in its place: of those of its name, one that had as much, or
  /// else the latest, is waited for no longer.
  void came_back(const Node& node);
  void forget_before(TimePoint time);

  const std::deque<DepartedNode>& nodes() const { return nodes_; }

 private:
  std::size_t most_;
  std::deque<DepartedNode> nodes_;
};

}  // namespace troupe::scheduler
