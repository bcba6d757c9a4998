#pragma once

#include <string_view>

#include <cuda_runtime_api.h>

namespace troupe::train {

/// Throws troupe::Error with the CUDA runtime's words, `what` was tried and the rank, unless it
/// succeeded.
void check_cuda(cudaError_t result, std::string_view what, int rank);

/// How many GPUs this process sees. Throws troupe::Impossible, with the CUDA runtime's reason, if
/// none.
int visible_devices(int rank);

}  // namespace troupe::train
