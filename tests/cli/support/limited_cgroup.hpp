#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "eventually.hpp"

namespace troupe::test {

/// What a cgroup is to hold its processes to: the files to write, of version 1 and of version 2.
struct CgroupLimit {
  using Files = std::vector<std::pair<std::string, std::string>>;
  std::string controller;  // of version 1
  Files version_1, version_2;
};

/// Half a processor, as `docker run --cpus=0.5` has it.
inline CgroupLimit half_a_cpu() {
  return {.controller = "cpu",
          .version_1 = {{"cpu.cfs_quota_us", "50000"}, {"cpu.cfs_period_us", "100000"}},
          .version_2 = {{"cpu.max", "50000 100000"}}};
}
/// As `docker run --memory` has it.
inline CgroupLimit memory_limit(std::size_t mebibytes) {
  const auto bytes = std::to_string(mebibytes << 20);
  return {.controller = "memory",
          .version_1 = {{"memory.limit_in_bytes", bytes}},
          .version_2 = {{"memory.max", bytes}}};
}
/// Processes and threads, as `docker run --pids-limit` has it.
inline CgroupLimit process_limit(int most) {
  return {.controller = "pids",
          .version_1 = {{"pids.max", std::to_string(most)}},
          .version_2 = {{"pids.max", std::to_string(most)}}};
}

/// A cgroup (version 1 or 2) with a limit, and one without a limit in it, which has the processes: a
/// limit of a group binds those below it. Gone with this object, once its processes have ended. False
/// where none can be made: that needs root, and the controller. Belongs to one thread.
class LimitedCgroup {
 public:
  explicit LimitedCgroup(const CgroupLimit& limit) {
    const std::filesystem::path root = "/sys/fs/cgroup";
    const bool is_1 = std::filesystem::is_directory(root / limit.controller);
    // Below the own one, whose limits bind as well.
    auto folder =
        is_1 ? root / limit.controller / own_group(limit.controller) : root / own_group("");
    folder /= "troupe-limit-" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error) || error) return;
    folder_ = folder;
    bool is_limited = true;
    for (const auto& [file, text] : is_1 ? limit.version_1 : limit.version_2)
      is_limited = is_limited && write(file, text);
    if (!is_limited || !std::filesystem::create_directory(inner(), error) || error) remove();
  }
  ~LimitedCgroup() { remove(); }
  LimitedCgroup(const LimitedCgroup&) = delete;
  LimitedCgroup& operator=(const LimitedCgroup&) = delete;

  explicit operator bool() const { return !folder_.empty(); }
  /// False, with a line that says so, where there is none.
  bool is_there() const {
    if (folder_.empty()) WARN("skipped: no cgroup with such a limit can be made here");
    return !folder_.empty();
  }

  /// A command that does this one in the group, with all that it starts.
  std::vector<std::string> within(std::vector<std::string> command) const {
    command.insert(command.begin(),
                   {"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", inner() / "cgroup.procs"});
    return command;
  }

 private:
  std::filesystem::path inner() const { return folder_ / "inner"; }

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
    for (const auto& group : {inner(), folder_})
      eventually([&] { return ::rmdir(group.c_str()) == 0 || errno != EBUSY; });
    folder_.clear();
  }

  std::filesystem::path folder_;
};

}  // namespace troupe::test
