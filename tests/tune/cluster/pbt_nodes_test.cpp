#include <csignal>
#include <filesystem>

#include <catch2/catch.hpp>

#include "support/cluster.hpp"
#include "support/population_files.hpp"

using namespace troupe::test;
using namespace troupe;

TEST_CASE("a population that loses a node in the midst of takeovers ends without losing a member",
          "[tune][pbt][cluster][failure]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  TestCluster cluster(2);
  const TemporaryFolder folder;
  Child driver({TROUPE_TEST_DRIVER, folder.path(), "6", std::to_string(ranks), "2", "0"},
               cluster.environment());
  driver.wait_for_output("takes over");
  const bool held = eventually([&] { return std::filesystem::exists(folder.path() + "/held"); });
  INFO(driver.output());
  REQUIRE(held);

  REQUIRE(::kill(cluster.worker(1).agent(), SIGKILL) == 0);

  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  const auto run = std::filesystem::path(folder.path()) / "storage" / "run-1";
  const auto restored = tune::check_what_was_restored(run, ranks);
  CHECK(restored.of_others > 0);
  const auto summary = tune::summary_of(run);
  int restarts = 0;
  for (const auto& trial : summary.at("trials")) {
    CHECK(trial.at("status") == "terminated");
    CHECK(trial.at("t") == 8);
    CHECK(trial.at("failures") == 0);
    restarts += trial.at("restarts").get<int>();
  }
  CHECK(summary.at("trials").size() == 6);
  CHECK(restarts > 0);
}
