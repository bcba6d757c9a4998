#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <troupe/cluster.hpp>
#include <troupe/gang.hpp>

#include "host/rank_host.hpp"
#include "run/launch.hpp"

namespace troupe::launch {

/// The hosts of a gang of programs, placed.
struct PlacedHosts {
  Gang<RankHost> hosts;
  int per_host = 1;
};

/// Places the gang: as large as fits, where its size is elastic, which waits up to 5 s for what
/// `before` ranks held that have just ended (0: there were none). Looks at `give_up` every 100 ms,
/// and returns no gang once it is true. Throws Impossible or Refused, which say what there is.
PlacedHosts place_hosts(const LaunchOptions& options, const Cluster& cluster, int before,
                        const std::function<bool()>& give_up);

/// The names of the nodes that are there, by their numbers. Asks the head.
std::map<std::uint32_t, std::string> node_names(const Cluster& cluster);

}  // namespace troupe::launch
