#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "normalization/batch_statistics.hpp"

namespace troupe::train {

/// (input - mean) / sqrt(variance + eps) * weight + bias, with the moments of all ranks, in the
/// input's type. `weight` and `bias`: undefined for 1 and 0, else of the input's type, or of
/// float32 where the input is smaller. Its backward is a collective of `statistics`, which the
/// graph holds weakly: once the statistics are no more, backward() throws std::logic_error.
at::Tensor normalized(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      const BatchMoments& moments, double eps,
                      const std::shared_ptr<const BatchStatistics>& statistics);

}  // namespace troupe::train
