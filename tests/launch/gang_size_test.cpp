#include "plan/gang_size.hpp"

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

using namespace troupe::launch;

TEST_CASE("a number of ranks is one number, two, or a rank for each GPU", "[launch]") {
  CHECK(parse_gang_size("4").least == 4);
  CHECK(parse_gang_size("4").most == 4);
  CHECK_FALSE(parse_gang_size("4").is_elastic());
  CHECK(parse_gang_size("2:8").least == 2);
  CHECK(parse_gang_size("2:8").most == 8);
  CHECK(parse_gang_size("2:8").is_elastic());
  CHECK(parse_gang_size("gpus").every_gpu);
}

TEST_CASE("what is no number of ranks is refused with what is one", "[launch]") {
  for (const auto* text :
       {"", "0", "-1", "four", "4 ", "8:2", "2:", ":2", "2:8:9", "1e3", "65537"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_gang_size(text), Catch::Contains("give 4, or 2:8"));
  }
  CHECK_THROWS_WITH(parse_gang_size("p"), Catch::Contains("it is '-n' here"));
}
