#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <troupe/cluster.hpp>
#include <troupe/gang.hpp>

#include "growth/room_watch.hpp"
#include "host/rank_host.hpp"
#include "plan/gang_size.hpp"
#include "run/launch.hpp"

namespace troupe::launch {

/// The hosts of a gang of programs, placed.
struct PlacedHosts {
  Gang<RankHost> hosts;
  int per_host = 1;
};

struct PlacingCallbacks {
  std::function<bool()> give_up;                ///< whether the gang is not wanted any more
  std::function<void(const std::string&)> say;  ///< why nothing goes on, in words for people
};

/// Places the gang: as large as fits, where its size is elastic, and up to its goal where it has one.
/// Waits up to 5 s for room for ranks_to_await(), as what ranks that have just ended held is not free
/// at once, and for a head that is silent. Looks at `give_up` every 100 ms, and every 5 s while the head
/// is silent; returns no gang once it is true. Throws Impossible or Refused, which say what there is,
/// and Disconnected.
PlacedHosts place_hosts(const LaunchOptions& options, const Cluster& cluster,
                        const SizeBefore& before, const PlacingCallbacks& callbacks);

/// What the cluster has room for besides the ranks that run. None: its head did not answer. Asks the
/// head.
std::optional<RoomSeen> look_for_room(const LaunchOptions& options, const Cluster& cluster,
                                      const GangPlan& running);

/// The names of the nodes that are there, by their numbers. Asks the head.
std::map<std::uint32_t, std::string> node_names(const Cluster& cluster);

}  // namespace troupe::launch
