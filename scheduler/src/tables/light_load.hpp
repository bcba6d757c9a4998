#pragma once

#include <cstddef>

namespace troupe::scheduler {

/// The light processes of one node (see LightProcesses), in relation to its CPUs.
struct LightLoad {
  std::size_t processes = 0;
  std::size_t cpus = 1;  ///< whole ones, at least one

  friend bool operator<(const LightLoad& a, const LightLoad& b) {
    return a.processes * b.cpus < b.processes * a.cpus;
  }
};

}  // namespace troupe::scheduler
