#include "collective/nccl/nccl_error.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {

std::string text_of(ncclResult_t result, ncclComm_t comm) {
  std::string text = ncclGetErrorString(result);
  const char* last = ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += fmt::format(": {}", last);
  return text;
}

void check_nccl(ncclResult_t result, ncclComm_t comm, std::string_view what, int rank) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const auto message =
      fmt::format("rank {}: {} failed in NCCL: {}", rank, what, text_of(result, comm));
  if (result == ncclInvalidArgument || result == ncclInvalidUsage)
    throw std::invalid_argument(message);
  throw GangBroken(Failure{.kind = Failure::Kind::GangBroken, .message = message});
}

}  // namespace troupe::train
