#include "collective/nccl/cuda_error.hpp"

#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {

void check_cuda(cudaError_t result, std::string_view what, int rank) {
  if (result == cudaSuccess) return;
  throw Error(
      Failure{.kind = Failure::Kind::Unknown,
              .message = fmt::format("rank {}: {} failed: {} ({})", rank, what,
                                     cudaGetErrorString(result), cudaGetErrorName(result))});
}

int visible_devices(int rank) {
  int count = 0;
  const auto result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  const auto* why = result == cudaSuccess ? "its list is empty" : cudaGetErrorString(result);
  throw Impossible(Failure{
      .kind = Failure::Kind::Impossible,
      .message = fmt::format("no CUDA device is visible to this process: {} (rank {}). Ask for "
                             "GPUs (.each = {{.gpus = 1}}), or use the host communicator",
                             why, rank)});
}

}  // namespace troupe::train
