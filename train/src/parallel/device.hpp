#pragma once

#include <c10/core/Device.h>

namespace troupe::train {

/// Where a rank trains: cuda:<local rank> if this process was given GPUs, and LibTorch's CUDA
/// library, which is loaded at run time, can use them; else the CPU. Too few GPUs for the node's
/// ranks: they are shared in turn. Warns where GPUs are visible and the library is not. Throws
/// Impossible where CUDA was initialized in a process that this one was forked from.
c10::Device device_of_rank(int local_rank);

/// For tests: what device_of_rank() returns from now on in this process, and in those forked from
/// it.
void use_device(c10::Device device);

}  // namespace troupe::train
