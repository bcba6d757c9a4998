#include <csignal>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("what waits for a node's resource, and what ran there, goes on once that node is back",
          "[cli][cluster][rejoin][failure]") {
  TestCluster cluster(1);
  cluster.add_worker({"--name", "w2", "--resource", "special=1"});
  auto driver = cluster.driver("special");
  driver.wait_for_output("submitted");
  const auto special_is_held = [&] {
    const auto status = nlohmann::json::parse(cluster.status());
    for (const auto& node : status["nodes"]) {
      if (node["name"] == "w2") return !node["free"].contains("special");
    }
    return false;
  };
  REQUIRE(eventually(special_is_held));
  REQUIRE(::kill(cluster.worker(1).agent(), SIGKILL) == 0);

  // The lease of the task that ran is asked for again, and the actor's process waits behind it.
  const auto both_wait = [&] {
    std::size_t waiting = 0;
    const auto status = nlohmann::json::parse(cluster.status());
    for (const auto& pending : status["pending"]) {
      const auto reason = pending["reason"].get<std::string>();
      waiting +=
          reason.find("waits for a node with special 1: 'w2' (node 2), which had it, left") == 0
              ? 1
              : 0;
    }
    return waiting >= 2;
  };
  const bool waits = eventually(both_wait);
  INFO(driver.output() << cluster.status());
  REQUIRE(waits);
  cluster.add_worker({"--name", "w2", "--resource", "special=1"});
  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
  CHECK_THAT(driver.output(), Contains("actor "));
}

TEST_CASE("a head's patience for nodes that makes no sense is refused with the option",
          "[cli][rejoin][refusal]") {
  const auto refused = run({TROUPE_PROGRAM, "head", "--rejoin-patience", "-1"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.output, Contains("--rejoin-patience"));
}
