#pragma once

#include <cstdint>
#include <limits>

#include <c10/core/Device.h>

namespace troupe::testing {

/// A device for tests that train as on a GPU, in a process that has none. LibTorch's device type
/// HPU, which no program of ours has, is such a device in each process whose executable is linked
/// with other_device/memory.cpp, other_device/operators.cpp and other_device/guard.cpp.
///
/// The device's memory is main memory that an allocator of the device hands out and counts. Tensors
/// of the device are told apart from the CPU's: an operator that gets both is an error, except
/// where LibTorch lets a CUDA tensor meet one of the CPU (copies, scalars, indices). Every operator
/// computes with the CPU's kernel: values are equal to the CPU's, bit for bit, where LibTorch
/// chooses the same operators for both devices, which it does not for layer norm and LSTM.
///
/// Memory that a kernel needs only while the kernel runs is not counted. There are no sparse or
/// quantized tensors and no pinned memory, and no events or streams to wait for; in the place of
/// guard.cpp, other_device/guard_with_events.cpp has those of the double of the CUDA runtime.
/// Autocast, in an executable that is also linked with other_device/autocast.cpp, knows
/// torch::nn::Linear with a bias and mse_loss.
/// A CPU tensor without dimensions is taken as a scalar by every operator that does not write the
/// tensor: CUDA refuses one in some (`cat`, `mm`). The device's random values are those of the
/// CPU's generator.
c10::Device other_device();

/// What the tensors of this process have of the device's memory, in bytes as they asked for them.
/// From any thread, as the functions below.
std::int64_t other_bytes();
/// The most that other_bytes() was since the process began, or since forget_other_peak().
std::int64_t other_peak_bytes();
void forget_other_peak();

inline constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
/// An allocation that would bring other_bytes() beyond `bytes` throws c10::OutOfMemoryError from
/// now on, as CUDA's allocator does, and leaves all memory as it was. kNoLimit, as at the start:
/// main memory is the only limit.
void limit_other_memory(std::int64_t bytes);

}  // namespace troupe::testing
