#pragma once

#include <ATen/core/Tensor.h>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// Throws std::invalid_argument for a type that cannot be reduced.
DataType data_type_of(const at::Tensor& tensor);

}  // namespace troupe::train
