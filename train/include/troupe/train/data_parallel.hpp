#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/detail/archive.hpp>

namespace troupe::train {

/// In which type the ranks send each other gradients of float32 and float64.
enum class GradientCompression : std::uint8_t {
  None,  ///< in their own
  /// In bfloat16: half or a quarter of the bytes, and 8 bits of precision. Each rank rounds its
  /// gradients, which are summed in float32, and the average is rounded once for each node. A finite
  /// gradient above 3.39e38, the largest number of bfloat16, counts as that number; on a GPU, as in
  /// PyTorch, as infinite. Pays where the ranks are on several nodes and their network is what they
  /// wait for.
  BFloat16,
};

/// How Context::prepare(model) averages gradients. The defaults are those of PyTorch's
/// DistributedDataParallel.
struct DataParallelOptions {
  std::size_t first_bucket_bytes = 1 << 20;  ///< small, so that the first reduction starts early
  std::size_t bucket_bytes = 25 << 20;
  /// For parameters that got no gradient in a backward, nor under no_sync() before it. false: an
  /// error that names them. true: this rank adds zero to their average, and parameters that no rank
  /// used keep the gradient that they had; this costs one small all-reduce for each backward. The
  /// loss must depend on one of the parameters on every rank, be it as `loss + 0 * weight.sum()`:
  /// a backward that reaches none is not seen, and the next one would meet this one of the others.
  bool find_unused_parameters = false;
  /// Each backward that averages ends with rank 0's buffers (running means, ...) on all ranks, in
  /// one broadcast, and so all ranks evaluate the same model. false: a rank's buffers follow its
  /// own batches.
  bool broadcast_buffers = true;
  GradientCompression compression = GradientCompression::None;
};

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::GradientCompression> {
  static constexpr auto first = troupe::train::GradientCompression::None;
  static constexpr auto last = troupe::train::GradientCompression::BFloat16;
};
