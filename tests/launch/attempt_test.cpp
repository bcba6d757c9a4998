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

TEST_CASE("a gang grows where its ranks ended since they were told to (attempt 5)", "[launch]") {
  Attempt attempt(3);
  CHECK(attempt.can_grow());
  attempt.grow();
  CHECK(attempt.is_stopping());
  CHECK_FALSE(attempt.is_growing());
  attempt.on_exit(0, {.signal = SIGTERM, .was_told_to = true});
  attempt.on_end(0, {.signal = SIGTERM, .was_told_to = true});
  attempt.on_end(1, {});
  attempt.on_lost(2, "its node is gone", 3);
  CHECK(attempt.is_over());
  CHECK(attempt.is_growing());
  CHECK_FALSE(attempt.first_failure());

  Attempt lost(1);
  lost.grow();
  lost.on_lost(0, "its node is gone", 3);
  CHECK(lost.is_growing());
}

TEST_CASE("a gang does not grow once a rank has ended or the ranks are to end (attempt 4)",
          "[launch]") {
  Attempt done(2);
  done.on_exit(1, {});  // what it wrote still waits
  CHECK_FALSE(done.can_grow());
  done.grow();
  CHECK_FALSE(done.is_stopping());
  Attempt failed(2);
  failed.on_lost(0, "its node is gone", 3);
  CHECK_FALSE(failed.can_grow());
  Attempt interrupted(2);
  interrupted.interrupt();
  CHECK_FALSE(interrupted.can_grow());
}

TEST_CASE("a rank that fails since its peer was told to end to grow is not to blame (attempt 2)",
          "[launch]") {
  Attempt attempt(4);  // ranks 0 and 1 on one host, and 2 and 3 on another, which is told late
  attempt.grow();
  attempt.on_end(0, {.signal = SIGTERM, .at = 1, .was_told_to = true});
  attempt.on_exit(2, {.exit_code = 1, .at = 2});  // "connection closed by peer"
  attempt.on_end(2, {.exit_code = 1, .at = 2});
  attempt.on_end(3, {.signal = SIGABRT, .at = 2});
  CHECK_FALSE(attempt.first_failure());
  attempt.on_end(1, {.exit_code = 1, .at = 3, .was_told_to = true});
  CHECK(attempt.is_over());
  CHECK_FALSE(attempt.first_failure());
  CHECK(attempt.is_growing());

  Attempt interrupted(2);
  interrupted.grow();
  interrupted.interrupt();
  interrupted.on_end(0, {.was_told_to = true});
  interrupted.on_end(1, {.exit_code = 1, .at = 2});
  CHECK_FALSE(interrupted.first_failure());
  CHECK_FALSE(interrupted.is_growing());
}

TEST_CASE("ranks that have failed alone grow all the same once they were to (attempt 5)",
          "[launch]") {
  Attempt attempt(2);
  attempt.grow();
  attempt.on_end(0, {.exit_code = 3, .at = 1});
  attempt.on_end(1, {});
  CHECK(attempt.is_growing());
}

TEST_CASE("what ends a gang beside its growth is why it ended (attempt 5)", "[launch]") {
  Attempt done(2);  // in the moment in which it was to grow
  done.grow();
  for (const int rank : {0, 1}) done.on_end(rank, {});
  CHECK_FALSE(done.is_growing());
  Attempt interrupted(1);
  interrupted.grow();
  interrupted.interrupt();
  interrupted.on_end(0, {.was_told_to = true});
  CHECK_FALSE(interrupted.is_growing());
}

TEST_CASE(
    "attempts are numbered by restarts, growths and returns, and each has a folder of its own",
    "[launch]") {
  const AttemptNumber first;
  CHECK(first.folder().empty());
  const auto grown = first.after_growth();
  CHECK(grown.folder() == "growth-1");
  CHECK(grown.restarts == 0);
  const auto restarted = grown.after_failure();
  CHECK(restarted.folder() == "restart-1");
  CHECK(restarted.growths == 1);
  CHECK(restarted.after_growth().folder() == "growth-2");
  CHECK(restarted.index() == 2);
  const auto returned = grown.after_vain_growth();
  CHECK(returned.folder() == "return-1");
  CHECK_FALSE(returned.is_grown);
  CHECK(returned.restarts == 0);
  CHECK(returned.growths == 1);
  CHECK(returned.index() == 2);
  CHECK(returned.after_failure().folder() == "restart-1");
  CHECK(returned.after_growth().after_vain_growth().folder() == "return-2");
}
