#pragma once

#include <cstdint>
#include <type_traits>

#include <troupe/train/communicator.hpp>

#include "collective/host/half.hpp"

/// Elements of buffers as C++ types: as they are stored, and as they are computed.
namespace troupe::train {

/// T: as stored; the type inside: as computed.
template <class T>
struct Compute {
  using type = T;
};
template <>
struct Compute<Float16> {
  using type = float;
};
template <>
struct Compute<BFloat16> {
  using type = float;
};

template <class T, class A>
A load(T value) {
  if constexpr (std::is_same_v<T, A>)
    return value;
  else
    return widen(value);
}
template <class T, class A>
void store(A value, T& out) {
  if constexpr (std::is_same_v<T, A>)
    out = value;
  else
    narrow(value, out);
}

/// Calls `f` with a value of the stored type.
template <class F>
void with_type(DataType type, F f) {
  switch (type) {
    case DataType::Int8:
      return f(std::int8_t{});
    case DataType::UInt8:
      return f(std::uint8_t{});
    case DataType::Int32:
      return f(std::int32_t{});
    case DataType::Int64:
      return f(std::int64_t{});
    case DataType::Float16:
      return f(Float16{});
    case DataType::BFloat16:
      return f(BFloat16{});
    case DataType::Float32:
      return f(float{});
    case DataType::Float64:
      return f(double{});
  }
}

}  // namespace troupe::train
