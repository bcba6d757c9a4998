#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Of the processes that the last event had started, in the order of their starts.
std::vector<std::uint32_t> threads_of(const World& world) {
  std::vector<std::uint32_t> threads;
  for (const auto& start : world.seen<StartProcess>()) threads.push_back(start.threads);
  return threads;
}
using Threads = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a process is started with a thread for each whole CPU that was asked for, or one",
          "[scheduler][threads]") {
  World world;
  world.join("a", {{"cpu", 16}});
  const auto driver = world.start_job(1_job);
  world.ask_lease(driver, cpus(2.5));
  CHECK(threads_of(world) == Threads{2});
  world.ask_lease(driver, cpus(0.5));
  CHECK(threads_of(world) == Threads{1});
  world.ask_actor(1_actor, driver, cpus(0));
  CHECK(threads_of(world) == Threads{1});
  world.ask_actor(2_actor, driver, cpus(4));
  CHECK(threads_of(world) == Threads{4});
  world.ask_gang(1_gang, driver, 2, cpus(3));
  CHECK(threads_of(world) == Threads{3, 3});
}

TEST_CASE("a process that is idle is used again for what needs as many threads, and for no other",
          "[scheduler][threads]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  const auto two = world.ask_lease(driver, cpus(2));
  const auto first = world.lease_of(two)->process;
  world.give_back(world.lease_of(two)->lease);

  const auto one = world.ask_lease(driver, cpus(1));
  CHECK(threads_of(world) == Threads{1});
  const auto second = world.lease_of(one)->process;
  CHECK(second != first);
  world.give_back(world.lease_of(one)->lease);

  CHECK(world.lease_of(world.ask_lease(driver, cpus(2.5)))->process == first);
  CHECK(threads_of(world).empty());
  world.ask_actor(1_actor, driver, cpus(0));
  CHECK(world.actors.at(1_actor).process == second);
  CHECK(threads_of(world).empty());
}

TEST_CASE(
    "the idle process of a job that came later is no reason to serve it first, if it has other "
    "threads",
    "[scheduler][threads]") {
  const bool fits = GENERATE(false, true);
  World world;
  world.join("a", {{"cpu", 2}});
  const auto first = world.start_job(1_job), second = world.start_job(2_job);
  const auto warm = world.ask_lease(second, cpus(fits ? 1 : 2), 2_job);
  world.give_back(world.lease_of(warm)->lease);
  for (ActorId actor{1}; actor <= 2_actor; ++actor) world.ask_actor(actor, first, cpus(1));
  const auto early = world.ask_lease(first, cpus(1));
  const auto late = world.ask_lease(second, cpus(1), 2_job);
  world.release_actor(1_actor);
  CHECK(world.lease_of(early).has_value() == !fits);
  CHECK(world.lease_of(late).has_value() == fits);
}
