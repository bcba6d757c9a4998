#pragma once

#include <c10/core/ScalarType.h>

#include <troupe/train/mixed_precision.hpp>

namespace troupe::train {

inline at::ScalarType scalar_type_of(MixedPrecision::Type type) {
  switch (type) {
    case MixedPrecision::Type::BFloat16:
      return at::kBFloat16;
    case MixedPrecision::Type::Float16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

}  // namespace troupe::train
