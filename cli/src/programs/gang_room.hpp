#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// Whether there is room for a gang, as far as that can be told before it is asked for.
namespace troupe::cli {

/// Of a node, whoever uses it now.
struct NodeRoom {
  double cpus = 0;
  double gpus = 0;
};

/// The nodes on which a gang may be placed.
struct Room {
  std::string where;  ///< "this machine", "the cluster at 10.0.0.5:7420"
  std::vector<NodeRoom> nodes;
};

/// Of each trial.
struct GangNeeds {
  int hosts = 1;  ///< that are placed, each with `ranks_of_host` ranks on one node
  int ranks_of_host = 1;
  double cpus_of_rank = 0;
  double gpus_of_rank = 0;
  bool on_one_node = false;     ///< strict-pack
  bool on_other_nodes = false;  ///< strict-spread and per_node: each host on a node of its own
};

/// "[gang] cpus: a trial needs ..., and this machine has 4", for each thing of which there is too
/// little. Empty: a gang fits where nothing else runs, or nearly: labels, memory and what does not
/// divide are not looked at.
std::vector<std::string> why_no_room(const GangNeeds& needs, const Room& room);

/// The nodes of what `troupe status --json` prints.
std::vector<NodeRoom> nodes_of(const nlohmann::json& status);

}  // namespace troupe::cli
