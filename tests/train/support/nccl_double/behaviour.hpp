#pragma once

#include "support/nccl_double/nccl_double.hpp"

namespace nccl_double {

/// The fault of the operation that is about to begin, of which this counts one; or none.
Fault take_fault();

/// What every call of CUDA begins with that has the CPU wait for a device.
void note_wait();

/// Texts that C functions return: they live as long as the process.
const char* kept(const std::string& text);

}  // namespace nccl_double
