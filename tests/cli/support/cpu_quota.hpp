#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "eventually.hpp"

namespace troupe::test {

/// A cgroup (version 1 or 2) whose processes may use half a processor, as `docker run --cpus=0.5`
/// has it; gone with this object, once its processes have ended. False where none can be made: that
/// needs root, and the controller of processors. Belongs to one thread.
class CpuQuota {
 public:
  CpuQuota() {
    const std::filesystem::path version_1 = "/sys/fs/cgroup/cpu", version_2 = "/sys/fs/cgroup";
    const bool is_1 = std::filesystem::is_directory(version_1);
    // Below the own one, whose limits bind as well.
    auto folder = (is_1 ? version_1 : version_2) / own_group(is_1 ? "cpu" : "");
    folder /= "troupe-quota-" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error) || error) return;
    folder_ = folder;
    const bool is_limited =
        is_1 ? write("cpu.cfs_quota_us", "50000") && write("cpu.cfs_period_us", "100000")
             : write("cpu.max", "50000 100000");
    if (!is_limited) remove();
  }
  ~CpuQuota() { remove(); }
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  explicit operator bool() const { return !folder_.empty(); }

  /// A command that does this one in the group, with all that it starts.
  std::vector<std::string> within(std::vector<std::string> command) const {
    command.insert(command.begin(),
                   {"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", folder_ / "cgroup.procs"});
    return command;
  }

 private:
  /// Of this process, as it is in /proc/self/cgroup: "4:cpu,cpuacct:/a" or "0::/a".
  static std::filesystem::path own_group(const std::string& kind) {
    std::ifstream lines("/proc/self/cgroup");
    for (std::string line; std::getline(lines, line);) {
      const auto first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const auto kinds = "," + line.substr(first + 1, second - first - 1) + ",";
      if (kind.empty() ? kinds == ",," : kinds.find("," + kind + ",") != std::string::npos)
        return std::filesystem::path(line.substr(second + 1)).relative_path();
    }
    return {};
  }
  bool write(const std::string& file, const std::string& text) const {
    // A file that is not there must not be made: the folder may be one of an ordinary file system.
    if (!std::filesystem::exists(folder_ / file)) return false;
    std::ofstream out(folder_ / file);
    return static_cast<bool>(out << text << std::flush);
  }
  void remove() {
    if (folder_.empty()) return;
    eventually([this] { return ::rmdir(folder_.c_str()) == 0 || errno != EBUSY; });
    folder_.clear();
  }

  std::filesystem::path folder_;
};

}  // namespace troupe::test
