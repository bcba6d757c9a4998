#include "node/limits/cpus.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::node {

double offered_cpus(double told, double usable) { return told > 0 ? told : std::max(1.0, usable); }

std::string why_more_cpus_than_usable(double told, double usable) {
  const auto offered = offered_cpus(told, usable);
  if (told > 0 || offered <= usable) return {};
  return fmt::format(
      "this machine or container may use {0:g} CPUs, and its node offers {1:g}, because a task "
      "asks "
      "for one CPU unless it says otherwise: what runs here takes longer for it. Raise the limit "
      "(docker run --cpus), or have the node offer {0:g} with --cpus {0:g} (InitOptions::cpus)",
      usable, offered);
}

}  // namespace troupe::node
