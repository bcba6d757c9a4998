// What the doctor says of folders that are full, read-only or missing.
#include <unistd.h>
#include <catch2/catch.hpp>

#include "doctor/examined.hpp"
#include "support/own_mounts.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

Examined doctor_on(const std::string& mounts) {
  const Alone alone;
  return examine(with_own_mounts(mounts, {TROUPE_PROGRAM, "doctor", "--json"}), alone.environment);
}

}  // namespace

TEST_CASE("the doctor finds a spill folder that is read-only, and notes one that is full",
          "[cli][doctor]") {
  if (!can_mount()) return;
  const auto read_only = doctor_on("mount -t tmpfs -o ro none /var/tmp");
  CHECK(read_only.exit_code == 1);
  CHECK(read_only.level("spill folder") == "problem");
  CHECK_THAT(read_only.value("spill folder"), Contains("/var/tmp cannot be written: Read-only"));
  CHECK_THAT(read_only.remedy("spill folder"), Contains("--spill-directory"));
  const auto full =
      doctor_on("mount -t tmpfs -o size=1m none /var/tmp; head -c 1m /dev/zero > /var/tmp/filler");
  CHECK(full.level("spill folder") == "note");
  CHECK(full.value("spill folder") == "/var/tmp has 0 B free");
  CHECK_THAT(full.remedy("spill folder"), Contains("--spill-directory"));
}

TEST_CASE("the doctor notes a state folder on a disk that is nearly full", "[cli][doctor]") {
  if (!can_mount()) return;
  const Alone alone;
  const auto& folder = alone.folder.path();
  const auto examined = examine(with_own_mounts("mount -t tmpfs -o size=1m none " + folder,
                                                {TROUPE_PROGRAM, "doctor", "--json"}),
                                alone.environment);
  CHECK(examined.level("state folder") == "note");
  CHECK_THAT(examined.value("state folder"), Contains("free"));
  CHECK_THAT(examined.remedy("state folder"), Contains("XDG_STATE_HOME"));
}

TEST_CASE("the doctor measures the disk on which a spill folder would be made", "[cli][doctor]") {
  if (!can_mount("/var")) return;
  const auto to_be_made = doctor_on("mount -t tmpfs -o size=2g none /var");
  CHECK(to_be_made.level("spill folder") == "ok");
  CHECK(to_be_made.value("spill folder") == "/var/tmp has 2.0 GiB free");
}

TEST_CASE("the doctor notes a /dev/shm that is small, full or missing", "[cli][doctor]") {
  if (!can_mount()) return;
  const auto small = doctor_on("mount -t tmpfs -o size=64m none /dev/shm");
  CHECK(small.level("/dev/shm") == "note");
  CHECK(small.value("/dev/shm") == "64.0 MiB, 64.0 MiB free");
  CHECK_THAT(small.remedy("/dev/shm"), Contains("--shm-size=8g") && Contains("NCCL"));
  const auto full =
      doctor_on("mount -t tmpfs -o size=1m none /dev/shm; head -c 1m /dev/zero > /dev/shm/filler");
  CHECK_THAT(full.value("/dev/shm"), Contains("1.0 MiB, 0 B free"));
  CHECK_FALSE(full.remedy("/dev/shm").empty());
  const auto missing = doctor_on("mount -t tmpfs none /dev");
  CHECK(missing.value("/dev/shm") == "not there");
  CHECK_THAT(missing.remedy("/dev/shm"), Contains("mount -t tmpfs tmpfs /dev/shm"));
}

TEST_CASE("the doctor finds that a user has no home directory, and goes on", "[cli][doctor]") {
  const auto nobody = std::to_string(20'000 + getpid() % 40'000);
  const std::vector<std::string> no_home{
      "HOME=", "XDG_STATE_HOME=", "TROUPE_TOKEN=", "TROUPE_TOKEN_FILE=", "TROUPE_ADDRESS="};
  const std::vector<std::string> as_nobody{"setpriv", "--reuid", nobody, "--clear-groups"};
  auto command = as_nobody;
  command.insert(command.end(), {TROUPE_PROGRAM, "--version"});
  if (geteuid() != 0 || run(command, no_home).exit_code != 0) {
    WARN("skipped: programs cannot be run as another user here");
    return;
  }
  command = as_nobody;
  command.insert(command.end(), {TROUPE_PROGRAM, "doctor", "--json"});
  const auto examined = examine(command, no_home);
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("state folder") == "problem");
  CHECK_THAT(examined.remedy("state folder"), Contains("XDG_STATE_HOME"));
  CHECK(examined.level("token") == "problem");
  CHECK(examined.level("clock") == "ok");
}
