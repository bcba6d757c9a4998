#pragma once

#include "collective/host/half.hpp"

/// Numbers as elements of every type of a buffer, rounded to the nearest.
namespace troupe::testing {

template <class T>
void encode(T& out, double x) {
  out = static_cast<T>(x);
}
inline void encode(train::Float16& out, double x) { train::narrow(static_cast<float>(x), out); }
inline void encode(train::BFloat16& out, double x) { train::narrow(static_cast<float>(x), out); }

template <class T>
double decode(T x) {
  return static_cast<double>(x);
}
inline double decode(train::Float16 x) { return train::widen(x); }
inline double decode(train::BFloat16 x) { return train::widen(x); }

}  // namespace troupe::testing
