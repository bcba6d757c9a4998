#pragma once

namespace troupe::detail {

/// Whether this process is the driver of a cluster of its own, which no other program can ask. Any
/// thread.
bool is_cluster_private();

}  // namespace troupe::detail
