#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::train {

/// Copies gradients into a tensor of their size, which may be of a smaller type. In main memory,
/// what is finite stays finite: numbers too large for bfloat16 become its largest number, which
/// rounding makes infinite, and so does PyTorch. Infinities and NaN stay. On a GPU they are rounded,
/// as NCCL promises no finite averages either.
///
/// Costs reading the copy once more.
void copy_narrowed(const at::Tensor& to, const at::Tensor& gradients);

}  // namespace troupe::train
