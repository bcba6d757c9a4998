#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/buckets.hpp"

namespace troupe::train {

/// Of each parameter, how many.
std::vector<std::int64_t> elements_of(const std::vector<NamedTensor>& parameters);

/// The elements of `flat` from `offset` on, as a tensor that has the parameter's size: with its
/// strides too if it has no gaps, so that layouts such as channels-last stay.
at::Tensor laid_out(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter);

/// Returns when what the program's stream writes to the tensor is there. At once on a CPU.
void finish_writes(const at::Tensor& tensor);

}  // namespace troupe::train
