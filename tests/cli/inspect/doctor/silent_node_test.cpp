// What the doctor says of a node that says nothing for longer and longer.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "doctor/examined.hpp"
#include "stopped.hpp"

using namespace troupe::test;

namespace {

constexpr const char* kNode = "node 1 (w1)";

/// What it says of a node of which the head has heard nothing for so long. On a machine that stands
/// still the node may be lost by then: nothing is said of it.
Examined examined_after(double seconds) {
  TestCluster cluster(1);
  const Stopped silent(cluster.worker(0).agent());
  REQUIRE(eventually([&] {
    const auto nodes = nlohmann::json::parse(cluster.status()).at("nodes");
    return nodes.empty() || nodes.front().at("silent_seconds") > seconds;
  }));
  return doctor(cluster);
}

}  // namespace

TEST_CASE(
    "a node that has been silent for seven of the ten seconds after which it is lost is a "
    "problem",
    "[cli][cluster][doctor]") {
  Examined examined;
  for (int attempt = 0; attempt < 5; ++attempt) {
    examined = examined_after(7.1);
    if (!examined.finding(kNode).is_null()) break;
  }
  INFO(examined.report);
  CHECK(examined.exit_code == 1);
  CHECK(examined.level(kNode) == "problem");
  CHECK_THAT(examined.value(kNode), Catch::Contains("the head heard of it"));
  CHECK_THAT(examined.remedy(kNode), Catch::Contains("suspended"));
}
