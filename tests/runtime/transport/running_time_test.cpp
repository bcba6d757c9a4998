#include "os/running_time.hpp"

#include <array>

#include <unistd.h>
#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using troupe::os::RunningTime;

TEST_CASE("of a slice in which a process stood still no more counts than the slice",
          "[os][silence]") {
  RunningTime left(1s);
  for (int i = 0; i < 9; ++i) left.passed(i % 2 == 0 ? 1h : left.slice());
  CHECK_FALSE(left.is_over());
  left.passed(40ms);  // a signal has ended it early
  CHECK_FALSE(left.is_over());
  CHECK(left.slice() == 60ms);
  left.passed(1h);
  CHECK(left.is_over());
}

TEST_CASE("a descriptor is waited for as long as is said, and seen once it can be read",
          "[os][silence]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const auto begun = std::chrono::steady_clock::now();
  CHECK_FALSE(troupe::os::wait_readable(ends[0], RunningTime(250ms)));
  CHECK(std::chrono::steady_clock::now() - begun >= 250ms);
  REQUIRE(::write(ends[1], "x", 1) == 1);
  CHECK(troupe::os::wait_readable(ends[0], RunningTime(1h)));
  CHECK(troupe::os::wait_readable(ends[0], RunningTime(0s)));
  for (const int end : ends) ::close(end);
}
