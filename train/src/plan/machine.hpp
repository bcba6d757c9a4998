#pragma once

#include <cstdint>

#include <c10/core/Device.h>

#include <troupe/train/plan.hpp>

namespace troupe::train {

// A device's memory, in bytes, has two sources: LibTorch's answers for any device and initializes
// CUDA; NVML's answers for NVIDIA's GPUs, also in a process that must leave CUDA alone.

/// Of the first GPU that CUDA_VISIBLE_DEVICES shows this process; 0: it shows none.
std::uint64_t first_gpu_memory_by_nvml();
/// Of a device that this process trains on, as the device's allocator in LibTorch says.
std::uint64_t device_memory_by_libtorch(c10::Device device);

/// The options with what this machine and the defaults give where they have zeros, and with a
/// device that is not Auto. Does not initialize CUDA: no process that is forked from this one could
/// use CUDA afterwards. Throws std::invalid_argument for what this machine does not have or tell.
PlanOptions completed(PlanOptions options);

}  // namespace troupe::train
