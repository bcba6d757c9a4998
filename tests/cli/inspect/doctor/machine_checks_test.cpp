// What the doctor says of limits of a process.
#include <unistd.h>
#include <catch2/catch.hpp>

#include "doctor/examined.hpp"
#include "support/own_mounts.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr const char* kProcesses = "processes and threads (ulimit -u)";
constexpr const char* kLocked = "locked memory (ulimit -l)";

/// As another user where this one is root, whom the limit does not bind.
std::vector<std::string> with_processes(int limit, std::vector<std::string> command) {
  std::vector<std::string> all;
  if (geteuid() == 0) {
    const auto nobody = std::to_string(20'000 + getpid() % 40'000);
    all = {"setpriv", "--reuid", nobody, "--clear-groups"};
  }
  all.insert(all.end(), {"prlimit", "--nproc=" + std::to_string(limit)});
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

}  // namespace

TEST_CASE("the doctor notes that a node may open few files", "[cli][doctor]") {
  const auto examined = Alone().doctor_after("ulimit -n 1000");
  CHECK(examined.level("open files (ulimit -n)") == "note");
  CHECK(examined.value("open files (ulimit -n)") == "1000, up to 1000");
  CHECK_THAT(examined.remedy("open files (ulimit -n)"), Contains("limits.conf"));
}

TEST_CASE("the doctor notes that a user may have few processes, and finds that these are too few",
          "[cli][doctor]") {
  const Alone alone;
  if (run(with_processes(50, {TROUPE_PROGRAM, "--version"})).exit_code != 0) {
    WARN("skipped: this user has 50 processes, or programs cannot be run as another one");
    return;
  }
  const auto with = [&](int limit) {
    return examine(with_processes(limit, {TROUPE_PROGRAM, "doctor", "--json"}), alone.environment);
  };
  const auto few = with(1000);
  CHECK(few.level(kProcesses) == "note");
  CHECK(few.value(kProcesses) == "1000");
  CHECK_THAT(few.remedy(kProcesses), Contains("nproc in /etc/security/limits.conf"));
  const auto too_few = with(50);
  CHECK(too_few.level(kProcesses) == "problem");
  CHECK(too_few.exit_code == 1);
}

TEST_CASE("the doctor notes that InfiniBand needs more locked memory", "[cli][doctor]") {
  if (!can_mount()) return;
  const Alone alone;
  const auto examined = examine(
      with_own_mounts("mount -t tmpfs none /sys/class; mkdir -p /sys/class/infiniband/mlx5_0; "
                      "ulimit -l 64",
                      {TROUPE_PROGRAM, "doctor", "--json"}),
      alone.environment);
  CHECK(examined.level(kLocked) == "note");
  CHECK(examined.value(kLocked) == "64.0 KiB");
  CHECK_THAT(examined.remedy(kLocked), Contains("set it to unlimited"));
}
