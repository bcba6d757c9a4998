#pragma once

#include <cstddef>

namespace troupe::train {

/// How Context::prepare(model) averages gradients. The defaults are those of PyTorch's
/// DistributedDataParallel.
struct DataParallelOptions {
  std::size_t first_bucket_bytes = 1 << 20;  ///< small, so that the first reduction starts early
  std::size_t bucket_bytes = 25 << 20;
  /// For parameters that got no gradient in a backward, nor under no_sync() before it. false: an
  /// error that names them. true: this rank adds zero to their average, and parameters that no rank
  /// used keep the gradient that they had; this costs one small all-reduce for each backward.
  bool find_unused_parameters = false;
};

}  // namespace troupe::train
