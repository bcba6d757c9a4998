#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// Numbers the ranks that a search has on each node, so that a gang that comes when another one
/// has gone stands in its row of a timeline. Pure.
///
///   1. No two ranks that are there at once have the same slot of the same node.
///   2. Each rank has the lowest slot of its node that is free, in the order of ranks.
class Slots {
 public:
  /// `nodes` are those of the gang's ranks. The trial holds no slot.
  std::vector<Place> take(TrialId trial, const std::vector<std::string>& nodes);
  /// Of a trial without slots: nothing.
  void give_back(TrialId trial);

 private:
  std::map<std::string, std::set<int>> taken_;
  std::map<TrialId, std::vector<Place>> held_;
};

}  // namespace troupe::tune
