// What the doctor says of a machine whose clock is not the head's.
#include <catch2/catch.hpp>

#include "doctor/examined.hpp"

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("the doctor notes a clock that is seconds ahead of the head's",
          "[cli][cluster][doctor]") {
  const TestCluster cluster(0);
  auto environment = cluster.environment();
  environment.push_back("LD_PRELOAD=" + TROUPE_FAST_CLOCK);
  const auto examined = examine({TROUPE_PROGRAM, "doctor", "--json"}, environment);
  CHECK(examined.level("clock") == "note");
  CHECK_THAT(examined.value("clock"), Contains(" s behind this machine's"));
  CHECK_THAT(examined.remedy("clock"), Contains("NTP"));
}
