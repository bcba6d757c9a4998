// Single steps of the book: what each event makes of it.
#include <catch2/catch.hpp>

#include "lease_world.hpp"

using namespace troupe;
using namespace troupe::tasks;
using namespace troupe::tasks::test;
using namespace std::chrono_literals;

TEST_CASE("a task whose arguments are not there is cancelled, and never runs",
          "[runtime][tasks][book]") {
  LeaseWorld world;
  auto task = world.submit({.arguments_here = false});
  world.cancel(task);
  CHECK(task->ended == 1);
  CHECK(task->failure.kind == Failure::Kind::Cancelled);
  world.arguments_here(task);
  world.settle();
  CHECK(task->begun == 0);
  CHECK(task->ended == 1);
}

TEST_CASE(
    "a worker process that does not start fails no task: another one is asked for, after a pause",
    "[runtime][tasks][book]") {
  LeaseWorld world;
  std::vector<WorldTaskPtr> tasks;
  for (int i = 0; i < 1000; ++i) tasks.push_back(world.submit({}));
  world.turn();
  CHECK(world.asks().size() == LeaseBook::kMostAsks);
  world.refuse_all(Refusal::ProcessFailed);
  world.turn();
  CHECK(world.asks().empty());  // it pauses
  world.pass(LeaseBook::kFirstPause);
  CHECK(world.asks().size() == 1);
  world.settle();
  for (const auto& task : tasks) {
    REQUIRE(task->ended == 1);
    REQUIRE(task->ok);
  }
}

TEST_CASE("starts that fail for two seconds fail no task", "[runtime][tasks][book]") {
  LeaseWorld world;
  auto task = world.submit({});
  for (const auto until = world.now() + 2s; world.now() < until;) {
    world.refuse_all(Refusal::ProcessFailed);
    world.pass(LeaseBook::kTick);
  }
  CHECK(task->ended == 0);
  CHECK(world.warnings() == 1);
  world.settle();
  CHECK(task->ok);
}

TEST_CASE("starts that fail again and again are reported, a program that cannot run after three",
          "[runtime][tasks][book]") {
  for (const auto refusal : {Refusal::ProcessFailed, Refusal::ProgramFailed}) {
    LeaseWorld world;
    auto task = world.submit({});
    int failures = 0;
    for (int i = 0; i < 10'000 && task->ended == 0; ++i) {
      failures += static_cast<int>(world.asks().size());
      world.refuse_all(refusal);
      world.pass(LeaseBook::kTick);
    }
    CHECK(failures == (refusal == Refusal::ProgramFailed ? LeaseBook::kMostFailedPrograms
                                                         : LeaseBook::kMostFailedStarts));
    CHECK(task->failure.message.find("did not start, one after the other") != std::string::npos);
    // The next one is asked for at once.
    auto next = world.submit({});
    world.turn();
    CHECK(world.asks().size() == 1);
    world.settle();
    CHECK(next->ok);
  }
}

TEST_CASE("while a lease lives, failed starts fail nothing", "[runtime][tasks][book]") {
  LeaseWorld world;
  auto first = world.submit({});
  world.turn();
  world.grant_one();
  world.turn();
  REQUIRE(first->stage == BookedTask::Stage::Sent);
  auto second = world.submit({});
  for (int i = 0; i < 10'000; ++i) {
    world.refuse_all(Refusal::ProgramFailed);
    world.pass(LeaseBook::kTick);
  }
  CHECK(second->ended == 0);
  world.settle();
  CHECK(second->ok);
}

TEST_CASE("what can never be had fails what waits for it", "[runtime][tasks][book]") {
  LeaseWorld world;
  auto task = world.submit({});
  world.turn();
  world.refuse_all(Refusal::Never);
  CHECK(task->ended == 1);
  CHECK(task->failure.kind == Failure::Kind::Impossible);
}

TEST_CASE("shapes that nothing waits for are forgotten", "[runtime][tasks][book]") {
  LeaseWorld world;
  for (int i = 0; i < 6000; ++i) {
    world.submit({.shape = i});
    if (i % 50 == 0) world.settle();
  }
  world.settle();
  CHECK(world.book().shapes() <= LeaseBook::kIdleShapes);
}

TEST_CASE("of a line whose process dies, only what had begun loses a try",
          "[runtime][tasks][book]") {
  LeaseWorld world;
  world.learn_run_time(1us);  // so that many stand in line
  std::vector<WorldTaskPtr> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(world.submit({.retries = 0}));
  world.turn();
  for (int i = 0; i < 10; ++i) world.begin_and_finish_silently();  // their replies are lost
  world.begin();
  world.kill_all();
  world.settle();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    INFO(i);
    CHECK(tasks[i]->begun == 1);
    CHECK(tasks[i]->ended == 1);
    CHECK(tasks[i]->ok == (i > 10));
  }
  CHECK(tasks[3]->failure.message.find("had returned there") != std::string::npos);
}

TEST_CASE("a task of which nobody knows whether it had begun fails with the name of its option",
          "[runtime][tasks][book]") {
  LeaseWorld world;
  world.lose_records();
  world.learn_run_time(1us);
  const auto task = world.submit({.retries = 0});
  world.turn();
  world.begin();
  world.kill_all();
  world.settle();
  REQUIRE(task->ended == 1);
  CHECK_THAT(task->failure.message, Catch::Contains("nobody can say whether work had begun") &&
                                        Catch::Contains("see Options::retries"));
}
