#pragma once

#include <cstddef>

namespace nccl_double {

/// Whether all of it was given by one cudaMalloc, and not freed.
bool is_device_memory(const void* data, std::size_t bytes);

}  // namespace nccl_double
