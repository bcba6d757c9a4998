// What the doctor says of limits that a cgroup sets.
#include <catch2/catch.hpp>

#include "doctor/examined.hpp"
#include "support/limited_cgroup.hpp"
#include "support/own_mounts.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::vector<std::string> kDoctor{TROUPE_PROGRAM, "doctor", "--json"};

}  // namespace

TEST_CASE("the doctor names a quota of less than one CPU, and what a node offers there",
          "[cli][doctor][cpus]") {
  const LimitedCgroup quota(half_a_cpu());
  if (!quota.is_there()) return;
  const auto examined = examine(quota.within(kDoctor), Alone().environment);
  CHECK(examined.level("cores") == "note");
  CHECK(examined.value("cores") == "0.5 usable, the cgroup's limit is 0.5");
  CHECK_THAT(examined.remedy("cores"),
             Contains("a node offers 1 all the same") && Contains("--cpus 0.5"));
}

TEST_CASE("the doctor notes a cgroup whose memory is nearly taken", "[cli][doctor]") {
  const LimitedCgroup limit(memory_limit(512));
  if (!limit.is_there() || !can_mount("/mnt")) return;
  const Alone alone;
  const auto taking = [&](const std::string& mebibytes) {
    // What lies in a tmpfs counts as the memory of the group that wrote it.
    return examine(limit.within(with_own_mounts("mount -t tmpfs none /mnt; head -c " + mebibytes +
                                                    "m /dev/zero > /mnt/taken",
                                                kDoctor)),
                   alone.environment);
  };
  const auto little = taking("1");
  CHECK(little.level("memory limit") == "ok");
  CHECK_THAT(little.value("memory limit"), Contains("512.0 MiB by /sys/fs/cgroup/"));
  CHECK(little.level("memory") == "ok");
  const auto nearly_all = taking("464");
  CHECK(nearly_all.level("memory limit") == "note");
  CHECK_THAT(nearly_all.remedy("memory limit"), Contains("the kernel kills processes"));
  CHECK(nearly_all.level("memory") == "note");
  CHECK_THAT(nearly_all.value("memory"), Contains("512.0 MiB usable"));
  CHECK_THAT(nearly_all.remedy("memory"), Contains("--object-store-memory"));
}

TEST_CASE("the doctor notes a cgroup that allows few processes, above its own group too",
          "[cli][doctor]") {
  const LimitedCgroup limit(process_limit(500));
  if (!limit.is_there()) return;
  const auto examined = examine(limit.within(kDoctor), Alone().environment);
  CHECK(examined.level("processes by the cgroup") == "note");
  CHECK(examined.value("processes by the cgroup") == "500");
  CHECK_THAT(examined.remedy("processes by the cgroup"), Contains("pids.max"));
}
