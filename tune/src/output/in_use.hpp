#pragma once

#include <cstddef>
#include <optional>

namespace troupe::tune {

/// What the gangs of a search hold at one moment, as they have asked for it, and what their cluster
/// has in all.
struct InUse {
  std::size_t ranks = 0;
  double cpus = 0;
  double gpus = 0;
  std::optional<double> cluster_cpus = {};  ///< none: the head has not answered
  std::optional<double> cluster_gpus = {};
};

}  // namespace troupe::tune
