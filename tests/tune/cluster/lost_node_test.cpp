#include <csignal>
#include <filesystem>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("a trial whose node dies is started again on the other, and is no failure",
          "[tune][cluster][failure]") {
  TestCluster cluster(2);
  const TemporaryFolder folder;
  auto driver = cluster.driver(folder.path());
  const auto waits = [&](int rank) {
    return std::filesystem::exists(folder.path() + "/rank-" + std::to_string(rank) + "/waits");
  };
  const bool both_wait = eventually([&] { return waits(0) && waits(1); }, std::chrono::seconds(20));
  INFO(driver.output());
  REQUIRE(both_wait);

  REQUIRE(::kill(cluster.worker(1).agent(), SIGKILL) == 0);

  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(driver.output(),
             Contains("trial 0 was lost by the cluster (attempt 1), will be started again: ") &&
                 Contains("was lost with node") && Contains("trial 0 started (attempt 2)"));
  CHECK_THAT(driver.output(),
             Contains("1 restart after failures of the cluster; the last of trial 0: "));
  CHECK_THAT(driver.output(), Contains("status terminated, failures 0, restarts 1"));
}

TEST_CASE("a sweep whose nodes all restart, one after the other, goes on with those that come back",
          "[tune][cluster][failure]") {
  TestCluster cluster(2);
  const TemporaryFolder folder;
  auto driver = cluster.driver(folder.path(), {"on two nodes"});
  const auto waits = [&](int rank) {
    return std::filesystem::exists(folder.path() + "/rank-" + std::to_string(rank) + "/waits");
  };
  const bool both_wait = eventually([&] { return waits(0) && waits(1); }, std::chrono::seconds(20));
  INFO(driver.output());
  REQUIRE(both_wait);

  REQUIRE(::kill(cluster.worker(1).agent(), SIGKILL) == 0);
  driver.wait_for_output("trial 0 was lost by the cluster (attempt 1), will be started again: ");
  REQUIRE(::kill(cluster.worker(0).agent(), SIGKILL) == 0);
  const auto nobody_is_there = [&] {
    return nlohmann::json::parse(cluster.status())["nodes"].empty();
  };
  REQUIRE(eventually(nobody_is_there, std::chrono::seconds(20)));
  cluster.add_worker();
  cluster.add_worker();

  const auto status = driver.wait(std::chrono::seconds(60));
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(driver.output(), Contains("status terminated, failures 0, restarts 1"));
}
