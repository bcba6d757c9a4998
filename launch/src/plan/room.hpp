#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/options.hpp>

#include "plan/needs.hpp"

namespace troupe::launch {

/// What a node has, or what of it is free.
struct NodeRoom {
  std::vector<std::pair<std::string, std::string>> labels = {};
  double cpus = 0;
  double gpus = 0;
  double memory_gb = 0;
  std::uint32_t node = 0;  ///< its number in the cluster
};

/// Where ranks may be together.
struct RankLayout {
  int per_node = 0;  ///< so many on each node that has any; 0: as they fit
  Strategy strategy = Strategy::Pack;
  bool on_every_node = false;  ///< `per_node` decides how many there are: nobody gave a number
};

/// Whether the node has all labels that the ranks ask for.
bool has_labels(const NodeRoom& node, const RankNeeds& needs);

/// How many ranks of a gang have room on these nodes at once. Pure.
int ranks_that_fit(const RankNeeds& needs, const RankLayout& layout,
                   const std::vector<NodeRoom>& nodes);

/// What to do where so many ranks have no room on these nodes even when idle: "give -n 3, or
/// --per-node 2 so that 8 ranks have room, or ...". A machine that is to be added needs the labels
/// that the ranks ask for. Empty: the ranks have room, or there is no node that they may be on and
/// they ask for no label. Pure.
std::string way_to_room(int ranks, const RankNeeds& needs, const RankLayout& layout,
                        const std::vector<NodeRoom>& nodes);

}  // namespace troupe::launch
