// What the programs of a real cluster say of deaths and of its end.
#include <csignal>
#include <string>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "guard.hpp"
#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

int actor_of(Child& driver) {
  driver.wait_for_output("holding");
  const auto& output = driver.output();
  return std::stoi(output.substr(output.find("actor ") + 6));
}

}  // namespace

TEST_CASE("a killed process is reported as killed, also where its node was held up",
          "[cli][cluster][failure]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("hold");
  const int actor = actor_of(driver);
  const auto agent = cluster.worker(0).agent();
  {
    const Stopped held_up(agent);
    ::kill(actor, SIGKILL);
    // Twice as long as the head waits for the word of a node that speaks.
    REQUIRE(cluster.has_node_silent_for(3));
  }
  driver.wait_for_output("failed: ");
  REQUIRE(driver.wait());
  CHECK_THAT(driver.output(), Catch::Contains("was killed by signal 9"));
  CHECK_THAT(driver.output(), !Catch::Contains("says that it runs"));
}

TEST_CASE("a node that stood still says so, to its head too, and what became of it",
          "[cli][cluster][failure]") {
  TestCluster cluster(1);
  const auto agent = cluster.worker(0).agent();
  const auto nodes = [&] { return nlohmann::json::parse(cluster.status()).at("nodes"); };
  {
    const Stopped for_a_while(agent);
    REQUIRE(cluster.has_node_silent_for(5));
  }
  cluster.head().wait_for_output("node 1 (w1) stood still for ");
  cluster.worker(0).wait_for_output("this node stood still for ");

  {
    const Stopped for_too_long(agent);
    REQUIRE(eventually([&] { return nodes().empty(); }, kGuard));
  }
  cluster.head().wait_for_output("but its machine answers: the node stands still");
  cluster.worker(0).wait_for_output(
      "does not take this node back: it has taken node 1 for lost meanwhile, with all of its "
      "processes; this node stood still for ");
  REQUIRE(cluster.worker(0).wait());
}

TEST_CASE("after troupe stop a driver says that the cluster was stopped", "[cli][cluster][stop]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("hold");
  actor_of(driver);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  REQUIRE(driver.wait());
  CHECK_THAT(driver.output(),
             Catch::Contains("failed: the cluster was stopped: asked by `troupe stop`"));
  REQUIRE(cluster.worker(0).wait());
  REQUIRE(cluster.head().wait());
  CHECK_THAT(cluster.worker(0).output(),
             Catch::Contains("the cluster was stopped: asked by `troupe stop`"));
}

TEST_CASE("a program that leaves with large values of others ends without a warning",
          "[cli][cluster][store]") {
  TestCluster cluster(1);
  for (int i = 0; i < 10; ++i) {
    const auto done = cluster.run_driver("stored");
    INFO(done.output);
    REQUIRE(done.exit_code == 0);
  }
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  REQUIRE(cluster.worker(0).wait());
  REQUIRE(cluster.head().wait());
  CHECK_THAT(cluster.worker(0).output(), !Catch::Contains("refused a connection"));
  CHECK_THAT(cluster.head().output(), !Catch::Contains("refused a connection"));
}
