#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace troupe::test {

/// A cgroup whose processes stand still now and then, as on a machine that others share: for 0.2 to
/// 0.9 s, then they run for as long, and so on, from take_turns() until the end of this object.
/// Belongs to one thread; the turns have one of their own.
class Freezer {
 public:
  /// Nothing where none can be made: that needs root and a freezer cgroup of version 1 or 2.
  static std::optional<std::filesystem::path> make_folder(const std::string& name) {
    const std::filesystem::path version_1 = "/sys/fs/cgroup/freezer", version_2 = "/sys/fs/cgroup";
    const bool is_1 = std::filesystem::is_directory(version_1);
    // Below the own one, which may stand still too.
    auto folder = (is_1 ? version_1 : version_2) / own_group(is_1 ? "freezer" : "");
    folder /= "troupe-" + name + "-" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error) || error) return {};
    if (std::filesystem::exists(folder / (is_1 ? "freezer.state" : "cgroup.freeze"))) return folder;
    std::filesystem::remove(folder, error);
    return {};
  }

  /// `folder`: of make_folder().
  Freezer(std::filesystem::path folder, unsigned seed)
      : folder_(std::move(folder)),
        is_1_(std::filesystem::exists(folder_ / "freezer.state")),
        random_(seed),
        keeper_(::popen(
            ("exec sh -c '" + std::string(kKeep) + "' '" + folder_.string() + "'").c_str(), "we")) {
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;
  /// Lets the processes go, and kills those that have not ended.
  ~Freezer() {
    over_ = true;
    if (turns_.joinable()) turns_.join();
    ::pclose(keeper_);
  }

  /// A command that does this one in the group, with all that it starts.
  std::vector<std::string> within(std::vector<std::string> command) const {
    command.insert(command.begin(),
                   {"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", folder_ / "cgroup.procs"});
    return command;
  }

  /// How often they stood still.
  int turns() const { return times_still_; }

  void take_turns() {
    turns_ = std::thread([this] {
      std::uniform_int_distribution<int> length(200, 900);
      for (bool still = true; !over_; still = !still) {
        hold(still);
        if (still && stands_still()) ++times_still_;
        for (int left = length(random_); left > 0 && !over_; left -= 10)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  }

 private:
  /// Of this process, as it is in /proc/self/cgroup: "4:freezer:/a" or "0::/a".
  static std::filesystem::path own_group(const std::string& kind) {
    std::ifstream lines("/proc/self/cgroup");
    for (std::string line; std::getline(lines, line);) {
      const auto first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos || line.substr(first + 1, second - first - 1) != kind)
        continue;
      return std::filesystem::path(line.substr(second + 1)).relative_path();
    }
    return {};
  }
  /// Waits for it: the kernel stops one after the other.
  bool stands_still() const {
    for (int tries = 0; tries < 100; ++tries) {
      std::ifstream in(folder_ / (is_1_ ? "freezer.state" : "cgroup.events"));
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      if (text.find(is_1_ ? "FROZEN" : "frozen 1") != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  void hold(bool still) const {
    if (is_1_) {
      std::ofstream(folder_ / "freezer.state") << (still ? "FROZEN" : "THAWED");
    } else {
      std::ofstream(folder_ / "cgroup.freeze") << (still ? "1" : "0");
    }
  }

  /// A shell that waits for the end of this object, or of its process, however that comes: then it
  /// lets the processes go, kills those that have not ended after five seconds, and removes the
  /// group.
  static constexpr const char* kKeep = R"(
    trap "" INT TERM HUP
    cat > /dev/null
    for i in $(seq 100); do
      if [ -e $0/freezer.state ]; then echo THAWED > $0/freezer.state; else echo 0 > $0/cgroup.freeze; fi
      rmdir $0 2> /dev/null && exit
      [ $i -lt 50 ] || kill -9 $(cat $0/cgroup.procs)
      sleep 0.1
    done)";

  std::filesystem::path folder_;
  bool is_1_;
  std::minstd_rand random_;
  std::FILE* keeper_;
  std::atomic<int> times_still_ = 0;
  std::atomic<bool> over_ = false;
  std::thread turns_;
};

}  // namespace troupe::test
