#pragma once

#include <compare>
#include <string>
#include <utility>
#include <vector>

#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

/// Key and value, in the order of the keys. A node matches where it carries all that are asked for.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// What one process is to be given, and where. "gpu" below 1 is a share of one GPU; above 1 it must
/// be whole.
struct Need {
  Resources resources;
  Labels labels;
  bool spread = false;  ///< prefer the emptiest node to the fullest one that fits

  friend bool operator==(const Need&, const Need&) = default;
  friend std::strong_ordering operator<=>(const Need&, const Need&) = default;
};

/// Where the ranks of a gang go; all of them or none in every case.
enum class Strategy : unsigned char {
  Pack,          ///< on as few nodes as possible
  Spread,        ///< on as many nodes as possible
  StrictPack,    ///< on one node
  StrictSpread,  ///< each on a node of its own
};

/// "cpu 2, gpu 1 with label zone=a"
std::string to_string(const Need& need);
/// "pack", "spread", "strict pack", "strict spread"
std::string_view to_string(Strategy strategy);

}  // namespace troupe::scheduler
