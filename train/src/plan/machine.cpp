#include "plan/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <c10/core/CachingDeviceAllocator.h>

#include "node/limits/gpus.hpp"
#include "os/machine.hpp"

namespace troupe::train {
namespace {

using Device = PlanOptions::Device;

void complete_main_memory(PlanOptions& options) {
  if (options.main_memory == 0)
    options.main_memory = static_cast<std::uint64_t>(os::usable_memory_bytes());
  if (options.main_memory > 0) return;
  throw std::invalid_argument(
      "PlanOptions::main_memory is 0, and this machine does not tell in /proc/meminfo how much it "
      "has: give the bytes of a node's main memory");
}

void complete_device(PlanOptions& options) {
  if (options.device_memory == 0 && options.device != Device::Cpu)
    options.device_memory = first_gpu_memory_by_nvml();
  if (options.device == Device::Auto)
    options.device = options.device_memory > 0 ? Device::Gpu : Device::Cpu;
  if (options.device_memory > 0) return;
  if (options.device == Device::Gpu) {
    throw std::invalid_argument(
        "PlanOptions::device is Gpu, device_memory is 0, and this process is shown no GPU that "
        "tells its memory: give the bytes of a GPU's memory, as for a plan for another machine");
  }
  options.device_memory = options.main_memory / static_cast<std::uint64_t>(options.ranks_per_node);
}

}  // namespace

std::uint64_t first_gpu_memory_by_nvml() {
  const auto gpus = node::find_gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  return gpus.empty() ? 0 : gpus.front().memory_bytes;
}

std::uint64_t device_memory_by_libtorch(c10::Device device) {
  return c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).second;
}

PlanOptions completed(PlanOptions options) {
  if (options.ranks_per_node == 0) options.ranks_per_node = options.ranks;
  options.ranks_per_node = std::min(options.ranks_per_node, options.ranks);
  complete_main_memory(options);
  complete_device(options);
  if (options.activations == 0) options.activations = options.device_memory / 10;
  return options;
}

}  // namespace troupe::train
