#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// Both ranks of the first attempt have made their reports.
void wait_for_ranks(Child& driver, const TemporaryFolder& folder) {
  const auto waits = [&](int rank) {
    return std::filesystem::exists(folder.path() + "/rank-" + std::to_string(rank) + "/waits");
  };
  const bool both_wait = eventually([&] { return waits(0) && waits(1); });
  INFO(driver.output());
  REQUIRE(both_wait);
}

std::vector<nlohmann::json> lines_of(const std::string& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("a trial whose node dies is started again on the other, and is no failure",
          "[tune][cluster][failure]") {
  TestCluster cluster(2);
  const TemporaryFolder folder;
  auto driver = cluster.driver(folder.path());
  wait_for_ranks(driver, folder);

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
  wait_for_ranks(driver, folder);

  REQUIRE(::kill(cluster.worker(1).agent(), SIGKILL) == 0);
  driver.wait_for_output("trial 0 was lost by the cluster (attempt 1), will be started again: ");
  REQUIRE(::kill(cluster.worker(0).agent(), SIGKILL) == 0);
  const auto nobody_is_there = [&] {
    return nlohmann::json::parse(cluster.status())["nodes"].empty();
  };
  REQUIRE(eventually(nobody_is_there));
  cluster.add_worker();
  cluster.add_worker();

  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(driver.output(), Contains("status terminated, failures 0, restarts 1"));
}

TEST_CASE("a trial whose node is killed or shut down goes on from its last checkpoint, uncounted",
          "[tune][cluster][failure]") {
  const bool is_shut_down = GENERATE(false, true);  // as a node that is preempted is
  CAPTURE(is_shut_down);
  TestCluster cluster(2);
  const TemporaryFolder folder;
  auto driver = cluster.driver(folder.path(), {"with checkpoints"});
  wait_for_ranks(driver, folder);

  auto& worker = cluster.worker(1);
  REQUIRE(::kill(is_shut_down ? worker.pid() : worker.agent(), is_shut_down ? SIGTERM : SIGKILL) ==
          0);

  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(driver.output(), Contains("status terminated, failures 0, restarts 1"));
  CHECK_THAT(driver.output(), Contains(is_shut_down ? "was ended: its node stops: terminated"
                                                    : "was lost with node"));
  const auto run = folder.path() + "/run-1/";
  std::vector<nlohmann::json> launches;
  for (const auto& event : lines_of(run + "journal.jsonl")) {
    if (event.value("event", "") == "launched") launches.push_back(event);
  }
  REQUIRE(launches.size() == 2);
  CHECK_FALSE(launches[0].contains("checkpoint"));
  CHECK(launches[1].at("checkpoint") == "./trials/0/step-3");
  CHECK(launches[1].at("after_t") == 3);
  const auto reports = lines_of(run + "reports.jsonl");
  REQUIRE(reports.size() == 5);  // none was made twice
  for (std::size_t i = 0; i < reports.size(); ++i) {
    CHECK(reports[i].at("t") == i + 1);
    CHECK(reports[i].at("metrics").at("accuracy") == i + 1);
    CHECK(reports[i].at("metrics").at("from") == (i < 3 ? 0 : 3));
  }
  const auto summary = nlohmann::json::parse(std::ifstream(run + "summary.json"));
  CHECK(summary.at("trials").at(0).at("failures") == 0);
  CHECK(summary.at("trials").at(0).at("restarts") == 1);
}
