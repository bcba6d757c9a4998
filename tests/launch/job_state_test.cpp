// How a job is, in words.
#include "job/job.hpp"

#include <catch2/catch.hpp>

using namespace troupe::launch;

TEST_CASE("how a job is is told in words", "[launch]") {
  CHECK(state_of({.is_waiting = true}) == "waits for its place");
  CHECK(state_of({}) == "running");
  CHECK(state_of({.is_over = true}) == "succeeded");
  CHECK(state_of({.is_over = true, .exit_code = 3}) == "failed with exit code 3");
  CHECK(state_of({.is_over = true, .signal = 9}) == "ended by signal 9");
  CHECK(state_of({.is_over = true, .was_stopped = true, .signal = 15}) == "stopped");
}

TEST_CASE("a job that could not be started never says that it runs", "[launch]") {
  for (const bool is_over : {false, true}) {
    CHECK(state_of({.is_over = is_over, .exit_code = 127, .not_started = "no such program"}) ==
          "could not be started: no such program");
  }
}
