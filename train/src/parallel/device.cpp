#include "parallel/device.hpp"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "log/log.hpp"

namespace troupe::train {
namespace {

bool load_torch_cuda() {
  if (at::hasCUDA()) return true;
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    log::warn(fmt::format(
        "GPUs are visible, and LibTorch's CUDA library cannot be loaded ({}); training on the CPU. "
        "`./run setup` on a machine with GPUs installs what is missing",
        ::dlerror()));
    return false;
  }
  return at::hasCUDA();
}

}  // namespace

c10::Device device_of_rank(int local_rank) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1 || !load_torch_cuda())
    return c10::Device(c10::kCPU);
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(local_rank % devices));
}

}  // namespace troupe::train
