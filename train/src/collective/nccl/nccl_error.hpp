#pragma once

#include <string>
#include <string_view>

#include <nccl.h>

namespace troupe::train {

/// "unhandled system error: <what NCCL logged last>".
std::string text_of(ncclResult_t result, ncclComm_t comm);

/// Throws troupe::GangBroken with NCCL's words, `what` was tried and the rank, unless it succeeded
/// or is in progress. NCCL's failures of a communicator are treated as a broken gang: no rank can
/// go on with it.
void check_nccl(ncclResult_t result, ncclComm_t comm, std::string_view what, int rank);

}  // namespace troupe::train
