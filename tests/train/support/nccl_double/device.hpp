#pragma once

#include <cuda_runtime_api.h>

namespace nccl_double {

/// What every call of CUDA begins with. -> why it cannot go on, or success.
cudaError_t enter();

/// The device of this thread.
int current_device();

}  // namespace nccl_double
