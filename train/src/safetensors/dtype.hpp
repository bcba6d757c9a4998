#pragma once

#include <optional>

#include <c10/core/ScalarType.h>

#include "safetensors/header.hpp"

namespace troupe::train::safetensors {

/// The type of a file's values as LibTorch has it.
inline at::ScalarType scalar_type_of(DType type) {
  switch (type) {
    case DType::Bool:
      return at::kBool;
    case DType::U8:
      return at::kByte;
    case DType::I8:
      return at::kChar;
    case DType::F8E5M2:
      return at::kFloat8_e5m2;
    case DType::F8E4M3:
      return at::kFloat8_e4m3fn;
    case DType::F8E8M0:
      return at::kFloat8_e8m0fnu;
    case DType::F8E4M3Fnuz:
      return at::kFloat8_e4m3fnuz;
    case DType::F8E5M2Fnuz:
      return at::kFloat8_e5m2fnuz;
    case DType::I16:
      return at::kShort;
    case DType::U16:
      return at::kUInt16;
    case DType::F16:
      return at::kHalf;
    case DType::BF16:
      return at::kBFloat16;
    case DType::I32:
      return at::kInt;
    case DType::U32:
      return at::kUInt32;
    case DType::F32:
      return at::kFloat;
    case DType::C64:
      return at::kComplexFloat;
    case DType::F64:
      return at::kDouble;
    case DType::I64:
      return at::kLong;
    case DType::U64:
      return at::kUInt64;
  }
  return at::kUInt64;
}

/// Empty: the format has no such type.
inline std::optional<DType> dtype_of(at::ScalarType type) {
  for (auto at = DType::Bool; at <= DType::U64;
       at = static_cast<DType>(static_cast<std::uint8_t>(at) + 1)) {
    if (scalar_type_of(at) == type) return at;
  }
  return std::nullopt;
}

}  // namespace troupe::train::safetensors
