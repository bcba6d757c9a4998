#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "ids/ids.hpp"

namespace troupe::head {

/// The detached actors that had been constructed and have ended: with their node or by a death of
/// their process, or, in a list of their own, by somebody's handle. Each is remembered until it is forgotten by its name or an
/// actor of that name is constructed, and the last kMost of them at all. A value.
class LostActors {
 public:
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kMostEndBytes = 8192;
  static constexpr double kNodeStop = 5;  ///< seconds that a node takes to leave

  struct Lost {
    runtime::ActorId actor{};
    std::string name;
    std::string type;
    runtime::NodeId node{};
    std::string node_name;
    bool with_node = false;  ///< the node was lost, and not the actor's process alone
    std::string how;         ///< it ended, for people
    std::string end;         ///< of its work, as the actor told it before; empty: it did not
    double at = 0;           ///< seconds since 1970, by the head's clock
  };

  void add(Lost lost) {
    forget(lost.name);
    lost_.push_back(std::move(lost));
    if (lost_.size() > kMost) lost_.pop_front();
  }
  /// A node that stops by itself ends its processes before it leaves. `at`: now.
  void node_lost(runtime::NodeId node, double at) {
    for (auto& lost : lost_) {
      if (lost.node == node && lost.at > at - kNodeStop) lost.with_node = true;
    }
  }
  /// False: there is none of that name.
  bool forget(std::string_view name) {
    return std::erase_if(lost_, [name](const Lost& lost) { return lost.name == name; }) > 0;
  }
  /// nullptr: there is none of that name.
  const Lost* find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(lost_, [name](const Lost& lost) { return lost.name == name; });
    return found == lost_.end() ? nullptr : &*found;
  }
  /// The one that was lost first, first.
  const std::deque<Lost>& all() const { return lost_; }

 private:
  std::deque<Lost> lost_;
};

}  // namespace troupe::head
