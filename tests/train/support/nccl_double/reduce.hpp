#pragma once

#include <cstddef>
#include <span>

#include <nccl.h>

namespace nccl_double {

/// 0 for a type that the double does not know.
std::size_t size_of(ncclDataType_t type);

/// Element by element, in the order of the ranks; `out` may be one of `in`.
void reduce(std::span<const void* const> in, void* out, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op);

}  // namespace nccl_double
