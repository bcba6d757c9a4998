#include "node/limits/gpus.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include <dlfcn.h>

namespace troupe::node {
namespace {

/// The few functions of NVML that are needed, by their versioned names, which its ABI keeps.
struct Nvml {
  using Device = void*;
  struct Memory {
    unsigned long long total, free, used;
  };

  void* library;
  int (*init)() = load<int()>("nvmlInit_v2");
  int (*shutdown)() = load<int()>("nvmlShutdown");
  int (*count)(unsigned*) = load<int(unsigned*)>("nvmlDeviceGetCount_v2");
  int (*handle)(unsigned, Device*) = load<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  int (*uuid)(Device, char*, unsigned) = load<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  int (*name)(Device, char*, unsigned) = load<int(Device, char*, unsigned)>("nvmlDeviceGetName");
  int (*memory)(Device, Memory*) = load<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");

  explicit Nvml(const char* path) : library(::dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {}
  bool complete() const {
    return library && init && shutdown && count && handle && uuid && name && memory;
  }

  template <class Function>
  Function* load(const char* symbol) {
    return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, symbol));
  }
};

constexpr int kNoPermission = 4;  // of nvmlReturn_t

Gpu describe(const Nvml& nvml, unsigned index, Nvml::Device device) {
  Gpu gpu;
  gpu.index = index;
  std::array<char, 96> text{};
  if (nvml.uuid(device, text.data(), text.size()) == 0) gpu.uuid = text.data();
  text.fill('\0');
  if (nvml.name(device, text.data(), text.size()) == 0) gpu.name = text.data();
  Nvml::Memory memory{};
  if (nvml.memory(device, &memory) == 0) gpu.memory_bytes = memory.total;
  return gpu;
}

struct AllGpus {
  std::vector<Gpu> open;
  std::vector<std::uint32_t> lost;
};

AllGpus all_gpus(const char* library) {
  const Nvml nvml(library);
  AllGpus all;
  unsigned count = 0;
  if (!nvml.complete() || nvml.init() != 0) return all;
  if (nvml.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Nvml::Device device = nullptr;
    const int error = nvml.handle(i, &device);
    if (error == 0) all.open.push_back(describe(nvml, i, device));
    if (error != 0 && error != kNoPermission) all.lost.push_back(i);
  }
  nvml.shutdown();
  return all;
}

bool is_named(const Gpu& gpu, const std::string& word) {
  if (!gpu.uuid.empty() && gpu.uuid.starts_with(word)) return true;
  return word == std::to_string(gpu.index);
}

}  // namespace

std::vector<Gpu> find_gpus(const char* visible, const char* library) {
  auto all = all_gpus(library).open;
  if (visible == nullptr) return all;
  std::vector<Gpu> chosen;
  std::istringstream words(visible);
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    const auto found = std::ranges::find_if(
        all, [&](const Gpu& gpu) { return !word.empty() && is_named(gpu, word); });
    if (found == all.end()) break;
    chosen.push_back(*found);
  }
  return chosen;
}

std::vector<std::uint32_t> lost_gpus(const char* library) { return all_gpus(library).lost; }

std::string visible_devices(const std::vector<Gpu>& of_node,
                            const std::vector<std::uint32_t>& places) {
  std::string list;
  for (const auto place : places) {
    if (!list.empty()) list += ',';
    if (place >= of_node.size()) {
      list += std::to_string(place);
    } else {
      const auto& gpu = of_node[place];
      list += gpu.uuid.empty() ? std::to_string(gpu.index) : gpu.uuid;
    }
  }
  return list;
}

}  // namespace troupe::node
