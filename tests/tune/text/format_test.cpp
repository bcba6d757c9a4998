#include <catch2/catch.hpp>

#include "text/format.hpp"

namespace format_test {

using namespace troupe::tune;

TEST_CASE("a short time that was given is shown to its millisecond, one that was measured is not",
          "[tune][text]") {
  CHECK(exact_time(Seconds(0.35)) == "0.35 s");
  CHECK(exact_time(Seconds(0.005)) == "0.005 s");
  CHECK(exact_time(Seconds(25)) == "25.0 s");
  CHECK(exact_time(Seconds(125.004)) == "2 min 5 s");
  CHECK(short_time(Seconds(1.2345)) == "1.2 s");
}

}  // namespace format_test
