// Random events against the book. Each sequence is told by its seed.
#include <catch2/catch.hpp>

#include "lease_world.hpp"

using namespace troupe;
using namespace troupe::tasks;
using namespace troupe::tasks::test;

namespace {

/// What the book promises of a task that is over.
void check_end(const WorldTask& task) {
  CAPTURE(task.number, task.retries, task.begun, task.failure.message);
  REQUIRE(task.ended == 1);
  REQUIRE(task.begun <= 1 + task.retries);
  if (task.ok || task.arguments_failed || task.cancelled) return;
  if (task.failure.kind == Failure::Kind::Impossible) return;  // its shape was refused
  if (task.failure.message.find("did not start") != std::string::npos) return;
  // It died with its processes: then it had begun, and used up its tries.
  REQUIRE(task.begun == 1 + task.retries);
}

}  // namespace

TEST_CASE(
    "random tasks, deaths, recalls, refusals and cancellations: each task begins at most 1 + "
    "retries times and ends once",
    "[runtime][tasks][book][property]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    LeaseWorld world(seed);
    for (int i = 0; i < 600; ++i) {
      world.random_event();
      world.book().check();
    }
    world.settle();
    world.book().check();
    for (const auto& task : world.tasks()) check_end(*task);
    CHECK(world.leases_kept() == 0);
  }
}
