#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::train {

/// The tensor has the other's memory, type, size and device from now on. As Tensor::set_data, which
/// also takes the hooks off a parameter that is given another type.
inline void show(const at::Tensor& tensor, const at::Tensor& memory) {
  tensor.unsafeGetTensorImpl()->shallow_copy_from(memory.getIntrusivePtr());
}

}  // namespace troupe::train
