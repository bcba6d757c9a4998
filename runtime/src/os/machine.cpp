#include "os/machine.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "os/cgroup.hpp"

namespace troupe::os {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string namespace_id(const std::string& kind) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/ns/" + kind, ignored);
}

std::string machine_id() { return boot_id() + "/" + namespace_id("net"); }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

double usable_cpus() {
  cpu_set_t mask;
  double cpus = ::sched_getaffinity(0, sizeof mask, &mask) == 0
                    ? CPU_COUNT(&mask)
                    : std::thread::hardware_concurrency();
  if (const auto limit = cgroup_cpu_limit()) cpus = std::min(cpus, *limit);
  return cpus;
}

double usable_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  double bytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::string name;
    double kib = 0;
    if (std::istringstream(line) >> name >> kib && name == "MemTotal:") bytes = kib * 1024;
  }
  if (const auto limit = cgroup_memory_limit())
    bytes = std::min(bytes, static_cast<double>(*limit));
  return bytes;
}

}  // namespace troupe::os
