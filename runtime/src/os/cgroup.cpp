#include "os/cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace troupe::os {
namespace {

namespace fs = std::filesystem;

struct Mount {
  std::string root;  // of the hierarchy, as seen from the mount
  std::string directory;
};

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) return true;
  }
  return false;
}

/// Where the hierarchy of a version 1 controller is mounted, or, with an empty name, version 2's.
std::optional<Mount> find_mount(const std::string& controller) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string id, parent, device, root, directory, type, source, options;
    std::istringstream(line) >> id >> parent >> device >> root >> directory;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (controller.empty() ? type == "cgroup2"
                           : type == "cgroup" && has_word(options, controller)) {
      return Mount{root, directory};
    }
  }
  return std::nullopt;
}

/// The path of this process in that hierarchy, from /proc/self/cgroup: "ID:CONTROLLERS:PATH".
std::optional<std::string> path_in(const std::string& controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<fs::path> own_directory(const std::string& controller) {
  const auto mount = find_mount(controller);
  const auto path = path_in(controller);
  if (!mount || !path) return std::nullopt;
  // A container may see only a part of the hierarchy, whose root is then a part of the path.
  auto below = *path;
  if (mount->root != "/" && below.starts_with(mount->root)) below.erase(0, mount->root.size());
  auto directory = fs::path(mount->directory) / fs::path(below).relative_path();
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) directory = mount->directory;
  return directory;
}

std::optional<std::string> first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<double> number_in(const fs::path& file) {
  const auto line = first_line(file);
  double value = 0;
  if (!line || !(std::istringstream(*line) >> value)) return std::nullopt;
  return value;
}

/// This process's directory and those above it, which bind as well.
std::vector<fs::path> directories_up_from(const std::string& controller) {
  const auto mount = find_mount(controller);
  const auto directory = own_directory(controller);
  if (!mount || !directory) return {};
  std::vector<fs::path> found;
  for (auto at = *directory;; at = at.parent_path()) {
    found.push_back(at);
    if (at == fs::path(mount->directory) || at == at.root_path()) return found;
  }
}

/// The smallest of what `limit` finds in them.
template <class Limit>
std::optional<double> smallest_up_from(const std::string& controller, Limit limit) {
  std::optional<double> smallest;
  for (const auto& at : directories_up_from(controller)) {
    if (const auto found = limit(at)) smallest = std::min(smallest.value_or(*found), *found);
  }
  return smallest;
}

std::optional<double> cpu_max(const fs::path& directory) {
  const auto line = first_line(directory / "cpu.max");
  double quota = 0, period = 0;
  // "max 100000".
  if (!line || !(std::istringstream(*line) >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> cpu_quota_v1(const fs::path& directory) {
  const auto quota = number_in(directory / "cpu.cfs_quota_us");
  const auto period = number_in(directory / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

/// Version 1 says "none" with the largest multiple of a page below 2^63.
bool is_limit(double bytes) { return bytes < 9e18; }

/// Bytes of files in memory.stat, without shared memory; those of the cgroups below are counted in.
double file_cache_in(const fs::path& directory, bool version_1) {
  const std::string prefix = version_1 ? "total_" : "";
  std::ifstream file(directory / "memory.stat");
  std::string name;
  double bytes = 0, sum = 0;
  while (file >> name >> bytes) {
    if (name == prefix + "active_file" || name == prefix + "inactive_file") sum += bytes;
  }
  return sum;
}

std::optional<MemoryCgroup> memory_use(const fs::path& directory, bool version_1) {
  const auto limit = number_in(directory / (version_1 ? "memory.limit_in_bytes" : "memory.max"));
  const auto used = number_in(directory / (version_1 ? "memory.usage_in_bytes" : "memory.current"));
  if (!limit || !used || !is_limit(*limit)) return std::nullopt;
  const auto taken = *used - std::min(*used, file_cache_in(directory, version_1));
  return MemoryCgroup{directory, static_cast<std::uint64_t>(*limit),
                      static_cast<std::uint64_t>(taken)};
}

}  // namespace

std::optional<double> cgroup_cpu_limit() {
  const auto newer = smallest_up_from("", cpu_max);
  return newer ? newer : smallest_up_from("cpu", cpu_quota_v1);
}

std::optional<std::uint64_t> cgroup_memory_limit() {
  auto limit =
      smallest_up_from("", [](const fs::path& at) { return number_in(at / "memory.max"); });
  if (!limit)
    limit = smallest_up_from(
        "memory", [](const fs::path& at) { return number_in(at / "memory.limit_in_bytes"); });
  if (!limit || !is_limit(*limit)) return std::nullopt;
  return static_cast<std::uint64_t>(*limit);
}

std::optional<std::uint64_t> cgroup_process_limit() {
  const auto pids_max = [](const fs::path& at) { return number_in(at / "pids.max"); };  // or "max"
  auto limit = smallest_up_from("", pids_max);
  if (!limit) limit = smallest_up_from("pids", pids_max);
  if (!limit) return std::nullopt;
  return static_cast<std::uint64_t>(*limit);
}

std::optional<MemoryCgroup> tightest_memory_cgroup() {
  const auto left = [](const MemoryCgroup& group) {
    return group.limit_bytes - std::min(group.limit_bytes, group.used_bytes);
  };
  std::optional<MemoryCgroup> tightest;
  for (const bool version_1 : {false, true}) {
    for (const auto& directory : directories_up_from(version_1 ? "memory" : "")) {
      const auto found = memory_use(directory, version_1);
      if (found && (!tightest || left(*found) < left(*tightest))) tightest = found;
    }
  }
  return tightest;
}

MemoryCgroups own_memory_cgroup() {
  return {own_directory("").value_or(fs::path()), own_directory("memory").value_or(fs::path())};
}

}  // namespace troupe::os
