#include "support/one_gpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::testing {

bool sees_gpu() {
  const auto child = ::fork();
  if (child == 0) {
    int count = 0;
    ::_exit(cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool skipped_without_gpu() {
  if (sees_gpu()) return false;
  std::puts("skipped: no CUDA device is visible to this process");
  return true;
}

void share_one_gpu(int rank) {
  ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

}  // namespace troupe::testing
