#include "transport/stall_detector.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using troupe::transport::StallDetector;

TEST_CASE(
    "a beat that comes much too late says how long its process stood still, one that is a little "
    "late does not",
    "[transport][standstill]") {
  const StallDetector::Clock::time_point start{1h};
  StallDetector standstill(400ms);
  CHECK(standstill.came(start) == 0ms);  // nothing was expected
  standstill.expect(start + 200ms);
  CHECK(standstill.came(start + 150ms) == 0ms);
  standstill.expect(start + 200ms);
  CHECK(standstill.came(start + 600ms) == 0ms);
  CHECK(standstill.late(start + 1h) == 0ms);
  standstill.expect(start + 200ms);
  CHECK(standstill.late(start + 600ms) == 0ms);
  CHECK(standstill.late(start + 601ms) == 401ms);
  CHECK(standstill.came(start + 601ms) == 401ms);
  CHECK(standstill.came(start + 1h) == 0ms);  // it was told
}
