#include "collective/host/reduce.hpp"

#include <algorithm>
#include <cstdint>

#include "collective/host/average.hpp"
#include "collective/host/element.hpp"

namespace troupe::train {
namespace {

// Of the accumulator, in elements: stays in the first-level cache beside one input and one output.
constexpr std::size_t kBlock = 1024;

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct Smaller {  // a NaN wins on either side, as in LibTorch
  template <class T>
  static T apply(T a, T b) {
    return (b < a || b != b) ? b : a;
  }
};
struct Larger {
  template <class T>
  static T apply(T a, T b) {
    return (b > a || b != b) ? b : a;
  }
};

/// Integers wrap around, so they are computed unsigned.
template <class Op, class A>
A combine(A a, A b) {
  if constexpr (std::is_integral_v<A> &&
                (std::is_same_v<Op, Add> || std::is_same_v<Op, Multiply>)) {
    using U = std::uint64_t;  // no promotion to a signed int, whose overflow is undefined
    return static_cast<A>(Op::template apply<U>(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return Op::template apply<A>(a, b);
  }
}

template <class T, class A>
void widen_block(A* __restrict sum, const T* __restrict in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = load<T, A>(in[i]);
}
template <class T, class A, class Op>
void add_block(A* __restrict sum, const T* __restrict in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = combine<Op, A>(sum[i], load<T, A>(in[i]));
}
template <class T, class A, class Op>
void first_two(A* __restrict sum, const T* __restrict a, const T* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = combine<Op, A>(load<T, A>(a[i]), load<T, A>(b[i]));
}
template <class T, class A>
void store_block(T* __restrict out, const A* __restrict sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) store<T, A>(sum[i], out[i]);
}

template <class T, class Op>
void reduce_all(std::span<void* const> outs, std::span<const void* const> in, std::size_t count,
                int divisor) {
  using A = typename Compute<T>::type;
  alignas(64) A sum[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    auto input = [&](std::size_t k) { return static_cast<const T*>(in[k]) + at; };
    if (in.size() == 1)
      widen_block<T, A>(sum, input(0), n);
    else
      first_two<T, A, Op>(sum, input(0), input(1), n);
    for (std::size_t k = 2; k < in.size(); ++k) add_block<T, A, Op>(sum, input(k), n);
    if constexpr (std::is_floating_point_v<A>) {
      if (divisor > 1) average_block<T>(sum, in, at, n, divisor);
    }
    for (void* out : outs) store_block<T, A>(static_cast<T*>(out) + at, sum, n);
  }
}

template <class T>
void reduce_typed(std::span<void* const> outs, std::span<const void* const> in, std::size_t count,
                  ReduceOp op, int ranks) {
  switch (op) {
    case ReduceOp::Sum:
      return reduce_all<T, Add>(outs, in, count, 1);
    case ReduceOp::Average:
      return reduce_all<T, Add>(outs, in, count, ranks);
    case ReduceOp::Min:
      return reduce_all<T, Smaller>(outs, in, count, 1);
    case ReduceOp::Max:
      return reduce_all<T, Larger>(outs, in, count, 1);
    case ReduceOp::Product:
      return reduce_all<T, Multiply>(outs, in, count, 1);
  }
}

}  // namespace

void reduce(std::span<void* const> outs, std::span<const void* const> in, std::size_t count,
            DataType type, ReduceOp op, int ranks) {
  with_type(type, [&]<class T>(T) { reduce_typed<T>(outs, in, count, op, ranks); });
}

void divide(void* data, std::size_t count, DataType type, int ranks) {
  void* const outs[] = {data};
  const void* const in[] = {data};
  reduce(outs, in, count, type, ReduceOp::Average, ranks);
}

}  // namespace troupe::train
