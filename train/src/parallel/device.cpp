#include "parallel/device.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <troupe/errors.hpp>
#include "log/log.hpp"

namespace troupe::train {
namespace {

/// "" or why LibTorch's CUDA library cannot be loaded. Initializes nothing of CUDA.
std::string load_torch_cuda() {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  return ::dlerror();
}

bool has_gpus_to_use() {
  const auto* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible == '\0') return false;
  return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

/// LibTorch looks for its CUDA library once in a process, in the first call that asks for it, such
/// as torch::manual_seed, and remembers that there is none. Therefore it is loaded before main(),
/// where there is a GPU driver.
const bool kLoadedBeforeMain = has_gpus_to_use() && load_torch_cuda().empty();

std::optional<c10::Device> of_tests;

c10::Device without(const std::string& why) {
  log::warn(
      fmt::format("GPUs are visible, and LibTorch cannot use them ({}); training on the CPU", why));
  return {c10::kCPU};
}

}  // namespace

void use_device(c10::Device device) { of_tests = device; }

c10::Device device_of_rank(int local_rank) {
  if (of_tests) return *of_tests;
  int devices = 0;
  const auto found = cudaGetDeviceCount(&devices);
  if (found == cudaErrorInitializationError) {
    throw Impossible(Failure{
        .kind = Failure::Kind::Impossible,
        .message = "CUDA cannot be used in this process, as one that it was forked from had "
                   "initialized it before: use CUDA after the fork only"});
  }
  if (found != cudaSuccess && has_gpus_to_use()) return without(cudaGetErrorString(found));
  if (found != cudaSuccess || devices < 1) return {c10::kCPU};
  if (const auto why = kLoadedBeforeMain ? std::string() : load_torch_cuda(); !why.empty()) {
    return without(
        why + ". `./run setup` on a machine with GPUs installs LibTorch with its CUDA libraries");
  }
  if (!at::hasCUDA()) {
    return without(kLoadedBeforeMain ? "its CUDA library is loaded, and finds none"
                                     : "it was asked for CUDA before its CUDA library was loaded");
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(local_rank % devices)};
}

}  // namespace troupe::train
