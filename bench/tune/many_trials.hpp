#pragma once

#include "core/harness.hpp"

namespace troupe::bench {

/// What many trials cost, on private clusters: one-second trials on 16 places, compared with what
/// they would take if the next one began as the last one ends; and the driver's memory, which each
/// trial of a long run adds to. To be called while the program is in no cluster.
void many_trials(const Report& report);

}  // namespace troupe::bench
