#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::train {

/// Whether a tensor, which is defined, has the elements of `place`, in its memory and its shape: as
/// the same object or another one. A tensor with LibTorch's conjugate or negative bit has other
/// values than its memory, and is not in place. `place` is dense and has neither bit.
bool is_in_place(const at::Tensor& tensor, const at::Tensor& place);

}  // namespace troupe::train
