#pragma once

#include <string>

namespace troupe::node {

/// Why a copy of this process could not go on, in words that follow "it has": "3 threads (sweep,
/// pool)" or "initialized CUDA", which works in no copy of the process that did it. Empty: it could.
/// Costs microseconds where it could.
std::string why_not_to_fork();

/// Whether this process has. Of a copy of one that has, CUDA says that it has not, and never will.
bool has_initialized_cuda();

}  // namespace troupe::node
