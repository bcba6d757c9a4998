#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include <troupe/train/communicator.hpp>

#include "collective/host/element.hpp"

/// The average of finite numbers is finite, also where the sum of the numbers is too large for
/// their type. Pure functions over main memory.
///
/// The plain sum is made first, and divided. Only where the quotient is not finite is the average
/// computed anew, from numbers that are scaled down by a power of two before they are added. So
/// every average that the plain sum can hold keeps the bits and the speed of the plain sum. To
/// scale every number would cost the subnormal ones their low bits, which float16 gradients are
/// often among. To add in a wider type has no type for float64, and needs twice the bytes between
/// nodes.
///
/// An infinity or a NaN among the numbers goes through the scaled sum as through the plain one.
namespace troupe::train {

/// A power of two. At most a quarter of 1 / ranks: rounding at most doubles a sum in one format,
/// and partial sums are rounded to a second one between nodes.
template <class A>
A scale_of(int ranks) {
  return A{1} / static_cast<A>(std::bit_ceil(4 * static_cast<std::uint64_t>(ranks)));
}

template <class T>
auto largest() {
  if constexpr (std::is_same_v<T, Float16>)
    return widen(Float16{0x7bff});
  else if constexpr (std::is_same_v<T, BFloat16>)
    return widen(BFloat16{0x7f7f});
  else
    return std::numeric_limits<T>::max();
}

/// The average for a sum of scaled numbers. Limited to what T holds, since the rounding of the sum
/// may have taken it above the largest number.
template <class T, class A>
A mean_of_scaled(A sum, int ranks) {
  if (!std::isfinite(sum)) return sum;
  const A mean = sum / static_cast<A>(ranks) / scale_of<A>(ranks);
  return std::clamp(mean, -largest<T>(), largest<T>());
}

/// Not zero where one of the values seen is an infinity or a NaN. A loop over it is vectorised,
/// unlike one over std::isfinite.
template <class A>
class NotFinite {
 public:
  void see(A value) { bits_ |= std::bit_cast<Bits>(value - value); }
  explicit operator bool() const { return bits_ != 0; }

 private:
  using Bits = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;
  Bits bits_ = 0;
};

/// means[i] of in[k][at + i], where it is not finite yet.
template <class T, class A>
[[gnu::noinline]] void average_anew(A* means, std::span<const void* const> in, std::size_t at,
                                    std::size_t n, int ranks) {
  const A scale = scale_of<A>(ranks);
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isfinite(means[i])) continue;
    A sum = 0;
    for (const void* numbers : in)
      sum += load<T, A>(static_cast<const T*>(numbers)[at + i]) * scale;
    means[i] = mean_of_scaled<T>(sum, ranks);
  }
}

/// -> whether all results are finite.
template <class A, class Divide>
bool divide_each(A* sums, std::size_t n, Divide divide) {
  NotFinite<A> wrong;
  for (std::size_t i = 0; i < n; ++i) {
    sums[i] = divide(sums[i]);
    wrong.see(sums[i]);
  }
  return !wrong;
}

template <class A>
bool divide_block(A* sums, std::size_t n, int ranks) {
  const auto divisor = static_cast<A>(ranks);
  if (!std::has_single_bit(static_cast<unsigned>(ranks)))
    return divide_each(sums, n, [=](A sum) { return sum / divisor; });
  // The reciprocal of a power of two is exact, so that it gives the same bits, in less time.
  return divide_each(sums, n, [reciprocal = 1 / divisor](A sum) { return sum * reciprocal; });
}

/// sums[i] of in[k][at + i] becomes the average.
template <class T, class A>
void average_block(A* sums, std::span<const void* const> in, std::size_t at, std::size_t n,
                   int ranks) {
  if (!divide_block(sums, n, ranks)) average_anew<T>(sums, in, at, n, ranks);
}

// ---- averages whose sums are made in several steps, on several nodes ----------------------------

/// Of a floating type, as the functions below.
bool are_finite(const void* data, std::size_t count, DataType type);
/// out[i] = in[0][i] + in[1][i] + ..., each of them scaled for an average over `ranks`. Such sums
/// may be added to each other.
void sum_scaled(void* out, std::span<const void* const> in, std::size_t count, DataType type,
                int ranks);
/// Replaces the means that are not finite by those of whole sums that sum_scaled began.
void replace_by_scaled(void* means, const void* sums, std::size_t count, DataType type, int ranks);

}  // namespace troupe::train
