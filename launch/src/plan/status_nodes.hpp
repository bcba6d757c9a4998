#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/needs.hpp"
#include "plan/room.hpp"

namespace troupe::launch {

enum class Share { Total, Free };

/// Of a cluster's status (Cluster::status_json), the nodes that have the labels which the ranks ask
/// for: with all that each node has, or with what is free of those that are not kept for others.
/// Pure.
std::vector<NodeRoom> nodes_in(const nlohmann::json& status, const RankNeeds& needs, Share share);

/// Whether a gang of the driver whose process has this id is placed, and its worker processes start:
/// what they hold is not free any more. A driver of another machine may have the same id. Pure.
bool own_gang_starts(const nlohmann::json& status, int pid);

}  // namespace troupe::launch
