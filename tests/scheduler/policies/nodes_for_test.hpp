#pragma once

#include <deque>
#include <string>
#include <vector>

#include "../../support/id_literals.hpp"
#include "policies/candidate.hpp"

namespace troupe::scheduler::test {

inline const Need kCore{{{"cpu", 1}}, {}, false};

/// Nodes 1, 2, ... named 'a', 'b', ... for a policy to look at.
class NodesForTest {
 public:
  NodesForTest& add(const Resources& total, std::uint32_t gpus = 0, Labels labels = {}) {
    idle_.emplace_back(total, gpus);
    free_.push_back(idle_.back());
    labels_.push_back(std::move(labels));
    names_.emplace_back(1, static_cast<char>('a' + names_.size()));
    loads_.push_back({0, static_cast<std::size_t>(total.cpu().units())});
    return *this;
  }
  /// Of the node added last.
  NodesForTest& taken(const Resources& amounts) {
    free_.back().take(amounts);
    return *this;
  }
  /// On the node added last.
  NodesForTest& light(std::size_t processes) {
    loads_.back().processes = processes;
    return *this;
  }
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < idle_.size(); ++i) {
      const NodeId node{static_cast<std::uint32_t>(i + 1)};
      all.push_back({node, &names_[i], &labels_[i], &free_[i], &idle_[i], loads_[i]});
    }
    return all;
  }

 private:
  std::deque<Capacity> idle_, free_;
  std::deque<Labels> labels_;
  std::deque<std::string> names_;
  std::deque<LightLoad> loads_;
};

inline std::vector<NodeId> chosen(const Placement& placement) {
  return std::get<Chosen>(placement).nodes;
}
inline std::string waits(const Placement& placement) { return std::get<Waits>(placement).because; }
inline std::string impossible(const Placement& placement) {
  return std::get<Impossible>(placement).because;
}

}  // namespace troupe::scheduler::test
