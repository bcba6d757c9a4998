#include "node/limits/cpus.hpp"

#include <catch2/catch.hpp>

namespace troupe::node {

TEST_CASE("a node whose cgroup allows less than one CPU offers one", "[node][cpus]") {
  for (const double quota : {0.01, 0.5, 0.999}) {
    CHECK(offered_cpus(0, quota) == 1);
    CHECK_THAT(why_more_cpus_than_usable(0, quota),
               Catch::Contains("its node offers 1") && Catch::Contains("InitOptions::cpus"));
  }
}

TEST_CASE("a node offers what it may use or what it was told, and says nothing of it",
          "[node][cpus]") {
  for (const double usable : {1.0, 1.5, 64.0}) {
    CHECK(offered_cpus(0, usable) == usable);
    CHECK(why_more_cpus_than_usable(0, usable).empty());
  }
  for (const double told : {0.25, 0.5, 1.0, 3.0}) {
    CHECK(offered_cpus(told, 0.5) == told);
    CHECK(why_more_cpus_than_usable(told, 0.5).empty());
  }
}

}  // namespace troupe::node
