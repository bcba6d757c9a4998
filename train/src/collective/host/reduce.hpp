#pragma once

#include <cstddef>
#include <span>

#include <troupe/train/communicator.hpp>

/// Arithmetic of reductions: pure functions over main memory.
namespace troupe::train {

/// out[i] = in[0][i] op in[1][i] op ..., in this order; for Average divided by `ranks` at the end,
/// and finite where all of `in` are (see average.hpp). `outs` may be the same as `in` (every
/// element is read before it is written) or be one buffer beside them. All `outs` get the same
/// bits. float16 and bfloat16 are computed in float32 and rounded once.
void reduce(std::span<void* const> outs, std::span<const void* const> in, std::size_t count,
            DataType type, ReduceOp op, int ranks);

/// data[i] /= ranks. For Average, where the sum was made elsewhere.
void divide(void* data, std::size_t count, DataType type, int ranks);

}  // namespace troupe::train
