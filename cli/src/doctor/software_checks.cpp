#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fmt/format.h>

#include "doctor/finding.hpp"
#include "node/limits/gpus.hpp"
#include "store/types.hpp"

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kOldestCompiler = 12;

/// Empty where the command is not there or fails.
std::string first_line_of(const char* command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command, "r"), ::pclose);
  std::array<char, 256> line{};
  if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return {};
  const std::string text = line.data();
  return text.substr(0, text.find('\n'));
}

std::string line_of_file(const char* file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

void check_compiler(Findings& findings) {
  const auto version = first_line_of("g++ -dumpfullversion 2>/dev/null");
  if (version.empty()) {
    return findings.note("g++", "not found",
                         fmt::format("install g++ {} or later where programs are compiled; a "
                                     "machine that only runs them needs none",
                                     kOldestCompiler));
  }
  if (std::atoi(version.c_str()) >= kOldestCompiler) return findings.ok("g++", version);
  findings.note(
      "g++", version,
      fmt::format("install g++ {0} or later (Debian: g++-{0}) where programs are compiled, "
                  "or name another compiler to CMake (-DCMAKE_CXX_COMPILER): Troupe's "
                  "headers are C++20",
                  kOldestCompiler));
}

/// NVIDIA's displays and accelerators, by what the PCI bus tells, with a driver or without.
std::size_t gpus_on_the_bus() {
  std::size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator device("/sys/bus/pci/devices", error), end; !error && device != end;
       device.increment(error)) {
    const auto path = device->path().string();
    if (line_of_file((path + "/vendor").c_str()) != "0x10de") continue;
    count += line_of_file((path + "/class").c_str()).starts_with("0x03") ? 1 : 0;
  }
  return count;
}

/// "2.21.5"; empty: there is no library of that name where the dynamic loader looks.
std::string nccl_version() {
  void* library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return {};
  const auto get = reinterpret_cast<int (*)(int*)>(::dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (!get || get(&version) != 0) return "of an unknown version";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void check_nccl(Findings& findings, bool gpus) {
  if (!gpus) return findings.ok("NCCL", "not looked for, as there is no GPU");
  if (const auto version = nccl_version(); !version.empty())
    return findings.ok("NCCL", "libnccl.so.2 " + version);
  findings.note(
      "NCCL", "the dynamic loader finds no libnccl.so.2",
      "training on GPUs needs it: a program that was linked with one finds it by its own "
      "run path (ldd ./program tells); otherwise name its folder in LD_LIBRARY_PATH where "
      "`troupe worker` is started");
}

void check_visible(Findings& findings, const std::vector<node::Gpu>& all) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return findings.ok("visible GPUs", "all: CUDA_VISIBLE_DEVICES is not set");
  const auto seen = node::find_gpus(visible).size();
  const auto value =
      fmt::format("{} of {}: CUDA_VISIBLE_DEVICES is '{}'", seen, all.size(), visible);
  if (seen == all.size()) return findings.ok("visible GPUs", value);
  findings.note("visible GPUs", value,
                "a node offers only these: unset the variable where `troupe worker` is started, "
                "unless that is meant");
}

/// And why, if there are some that no driver shows.
void say_no_gpus(Findings& findings) {
  std::error_code error;
  if (fs::exists("/dev/nvidiactl", error)) {
    return findings.problem(
        "GPUs", "/dev/nvidiactl is there, but NVIDIA's management library finds none",
        "look what `nvidia-smi` says: the driver's libnvidia-ml.so.1 must be there, "
        "and of the kernel module's version (in a container: --gpus all)");
  }
  const auto on_bus = gpus_on_the_bus();
  if (on_bus == 0) return findings.ok("GPUs", "none");
  findings.note("GPUs", fmt::format("{} of NVIDIA on the PCI bus, without a driver", on_bus),
                "install NVIDIA's driver, or start the container with --gpus all: a node offers "
                "no GPU without it");
}

}  // namespace

bool has_rdma() {
  std::error_code error;
  const fs::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != fs::directory_iterator();
}

bool has_gpus() { return !node::find_gpus(nullptr).empty(); }

void check_versions(Findings& findings) {
  utsname kernel{};
  ::uname(&kernel);
  findings.ok("troupe", kVersion);
  findings.ok("kernel", fmt::format("{} {} on {}", kernel.sysname, kernel.release, kernel.machine));
  findings.ok("glibc", ::gnu_get_libc_version());
  check_compiler(findings);
}

void check_gpus(Findings& findings) {
  const auto gpus = node::find_gpus(nullptr);
  const auto lost = node::lost_gpus();
  for (const auto index : lost) {
    findings.problem(
        fmt::format("GPU {}", index), "NVIDIA's driver counts it, and cannot open it",
        fmt::format("look for 'Xid' in dmesg, and reset it (nvidia-smi --gpu-reset -i {}) or start "
                    "the machine again: nodes do not offer it",
                    index));
  }
  if (gpus.empty()) {
    if (lost.empty()) say_no_gpus(findings);
    return check_nccl(findings, false);
  }
  for (const auto& gpu : gpus) {
    findings.ok(
        fmt::format("GPU {}", gpu.index),
        fmt::format("{}, {}, {}", gpu.name, store::format_bytes(gpu.memory_bytes), gpu.uuid));
  }
  const auto driver = line_of_file("/proc/driver/nvidia/version");
  findings.ok("GPU driver", driver.empty() ? "its version is not told here" : driver);
  check_visible(findings, gpus);
  check_nccl(findings, true);
}

}  // namespace troupe::cli
