#include "parallel/tensor_type.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::train {

DataType data_type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kChar:
      return DataType::Int8;
    case at::kByte:
      return DataType::UInt8;
    case at::kInt:
      return DataType::Int32;
    case at::kLong:
      return DataType::Int64;
    case at::kHalf:
      return DataType::Float16;
    case at::kBFloat16:
      return DataType::BFloat16;
    case at::kFloat:
      return DataType::Float32;
    case at::kDouble:
      return DataType::Float64;
    default:
      throw std::invalid_argument(
          fmt::format("tensors of type {} cannot be reduced", c10::toString(tensor.scalar_type())));
  }
}

}  // namespace troupe::train
