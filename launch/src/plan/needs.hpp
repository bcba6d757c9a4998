#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/options.hpp>

namespace troupe::launch {

/// What each rank of a gang of programs needs of its node.
struct RankNeeds {
  double cpus = 1;
  double gpus = 0;
  double memory_gb = 0;  ///< in 10^9 bytes, for placement only
  std::vector<std::pair<std::string, std::string>> labels = {};  ///< keys and values of the node
};

/// Of a host that runs so many ranks. troupe::Options has only views of labels, in a list whose
/// length is known as the program is built. Throws what troupe::with throws.
detail::RequestOptions request_of_host(const RankNeeds& needs, int ranks);

/// "pack", "spread", "strict-pack", "strict-spread"; none for another word.
std::optional<Strategy> strategy_named(const std::string& name);

}  // namespace troupe::launch
