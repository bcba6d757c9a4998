#include "run/attempt.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace troupe::launch;

TEST_CASE("an attempt is over once every rank has ended well", "[launch]") {
  Attempt attempt(2);
  CHECK_FALSE(attempt.is_over());
  attempt.on_end(1, {});
  attempt.on_end(1, {});  // said twice
  CHECK(attempt.left() == 1);
  attempt.on_end(0, {});
  CHECK(attempt.is_over());
  CHECK_FALSE(attempt.is_stopping());
  CHECK_FALSE(attempt.first_failure());
}

TEST_CASE("the first failure is the one with the earliest time, whichever is told first",
          "[launch]") {
  Attempt attempt(4);
  attempt.on_end(3, {.exit_code = 1, .at = 20});
  CHECK(attempt.is_stopping());
  attempt.on_end(2, {.pid = 77, .signal = SIGSEGV, .at = 10, .traceback = "Traceback"});
  attempt.on_end(1, {.signal = SIGTERM, .at = 5, .was_told_to = true});  // by us
  attempt.on_lost(0, "its node is gone", 1);                             // after the stop
  REQUIRE(attempt.is_over());
  REQUIRE(attempt.first_failure());
  CHECK(attempt.first_failure()->rank == 2);
  CHECK(attempt.first_failure()->pid == 77);
  CHECK(attempt.first_failure()->signal == SIGSEGV);
  CHECK(attempt.first_failure()->traceback == "Traceback");
  CHECK_THAT(attempt.first_failure()->why, Catch::StartsWith("was ended by signal 11"));
}

TEST_CASE("a rank that was lost with its node is a failure", "[launch]") {
  Attempt attempt(1);
  attempt.on_lost(0, "node 2 is gone", 3);
  CHECK(attempt.is_over());
  CHECK(attempt.first_failure()->why == "was lost: node 2 is gone");
}

TEST_CASE("ranks that end well or because they were told leave nobody to blame", "[launch]") {
  Attempt attempt(2);
  attempt.interrupt();
  CHECK(attempt.is_stopping());
  attempt.on_end(0, {.exit_code = 1, .was_told_to = true});
  attempt.on_end(1, {});
  CHECK(attempt.is_over());
  CHECK_FALSE(attempt.first_failure());
}

TEST_CASE("a rank whose output still waits is to blame at once, and ends later", "[launch]") {
  Attempt attempt(2);
  attempt.on_exit(1, {.exit_code = 4, .at = 2});
  CHECK(attempt.is_stopping());
  REQUIRE(attempt.first_failure());
  CHECK(attempt.first_failure()->rank == 1);
  CHECK(attempt.left() == 2);
  attempt.on_exit(0, {.exit_code = 9, .at = 1});  // before that one, and told later
  attempt.on_end(1, {.exit_code = 4, .at = 2});
  attempt.on_end(0, {.exit_code = 9, .at = 1});
  CHECK(attempt.is_over());
  CHECK(attempt.first_failure()->rank == 0);
}
