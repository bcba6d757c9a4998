#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/detail/core.hpp>

/// What a driver can know of the nodes of its cluster, for searches over gangs. Implemented in
/// runtime/src/session.
namespace troupe::detail {

/// One node, as the head knows it.
struct ClusterNode {
  std::uint32_t number = 0;  ///< GangContext::node()
  std::string name;
  double cpus = 0;  ///< that the node has, whoever uses them
  double gpus = 0;
};

/// Asks the head for its nodes, and returns at once: one message each way, some 100 bytes for each
/// node. nullptr where this process is no driver of a cluster. Any thread.
ObjectPtr ask_for_nodes();
/// What the head has answered, once that is ready; none where the head is gone or does not know the
/// question.
std::vector<ClusterNode> nodes_in(const ObjectPtr& answer);

/// The number of the node of each rank of a gang that has been placed, by rank; 0: its private
/// cluster does not say. Empty for actors that are no ranks of one. Any thread.
std::vector<std::uint32_t> nodes_of(std::span<const ActorPtr> ranks);

/// What a driver has from the process of a rank.
struct RankSign {
  std::uint64_t process = 0;  ///< its number; 0: unknown
  std::string last_line;      ///< that it has printed, cut to 200 bytes; empty: none has come
};
/// Looks up each of these ranks, and returns at once. nullptr where this process is no driver of a
/// cluster. Any thread.
ObjectPtr ask_for_signs(std::span<const ActorPtr> ranks);
/// What was found, by rank, once that is ready.
std::vector<RankSign> signs_in(const ObjectPtr& answer);

}  // namespace troupe::detail
