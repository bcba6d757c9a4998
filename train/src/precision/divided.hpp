#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::train {

/// Divides each gradient by `scale`, in place. -> whether all were finite. One pass over their
/// memory.
bool divide(const std::vector<at::Tensor>& gradients, double scale);

}  // namespace troupe::train
