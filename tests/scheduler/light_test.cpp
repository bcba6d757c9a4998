#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

std::size_t actors_on(const World& world, NodeId node) { return world.node(node).actors; }

}  // namespace

TEST_CASE("actors that ask for nothing go to the nodes in relation to their CPUs",
          "[scheduler][light]") {
  World world;
  const auto large = world.join("large", {{"cpu", 6}});
  const auto small = world.join("small", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  for (int i = 0; i < 6; ++i) world.ask_lease(driver, cpus(1));  // tasks make no difference
  for (ActorId actor{1}; actor <= 8_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  CHECK(actors_on(world, large) == 6);
  CHECK(actors_on(world, small) == 2);

  const auto third = world.join("third", {{"cpu", 2}});
  for (ActorId actor{9}; actor <= 10_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  CHECK(actors_on(world, third) == 2);
  for (ActorId actor{1}; actor <= 10_actor; ++actor) world.release_actor(actor);
  for (ActorId actor{11}; actor <= 15_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  CHECK(actors_on(world, large) == 3);
  CHECK(actors_on(world, small) == 1);
  CHECK(actors_on(world, third) == 1);
}

TEST_CASE("actors that ask for nothing go only where their labels let them", "[scheduler][light]") {
  World world;
  const auto plain = world.join("plain", {{"cpu", 8}});
  const auto first = world.join("first", {{"cpu", 1}}, 0, {{"zone", "a"}});
  const auto second = world.join("second", {{"cpu", 1}}, 0, {{"zone", "a"}});
  const auto driver = world.start_job(1_job);
  const Need in_zone{{}, {{"zone", "a"}}, false};
  for (ActorId actor{1}; actor <= 4_actor; ++actor) world.ask_actor(actor, driver, in_zone);
  CHECK(actors_on(world, plain) == 0);
  CHECK(actors_on(world, first) == 2);
  CHECK(actors_on(world, second) == 2);
}

TEST_CASE("actors that ask for nothing leave a node that is lost, and are counted no more there",
          "[scheduler][light]") {
  World world;
  const auto first = world.join("first", {{"cpu", 1}});
  const auto second = world.join("second", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  for (ActorId actor{1}; actor <= 4_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  world.step(NodeLost{first, 1_life, "unplugged"});
  CHECK(world.actors.size() == 2);
  for (ActorId actor{5}; actor <= 6_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  CHECK(actors_on(world, second) == 4);
}

TEST_CASE("actors that ask for nothing run beside tasks on every CPU", "[scheduler][light]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  for (ActorId actor{1}; actor <= 8_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  for (int i = 0; i < 2; ++i) world.ask_lease(driver, cpus(1));
  CHECK(world.actors.size() == 8);
  CHECK(world.leases.size() == 2);
}

TEST_CASE("more actors than a node may have wait, which their reason says, until others end",
          "[scheduler][light]") {
  Options options;
  options.light_processes_per_cpu = 2;
  World world{options};
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  for (ActorId actor{1}; actor <= 4_actor; ++actor) world.ask_actor(actor, driver, cpus(0));
  const auto fifth = world.ask_actor(5_actor, driver, cpus(0));
  CHECK(world.actors.size() == 4);
  CHECK_THAT(world.reason_of(fifth),
             Catch::StartsWith("worker processes that were given nothing") &&
                 Catch::Contains("light_processes_per_cpu, 2 per CPU") &&
                 Catch::EndsWith("end some of them, or add nodes"));
  world.ask_actor(6_actor, driver, cpus(0.5));  // it asks for something
  CHECK(world.actors.contains(6_actor));
  world.release_actor(2_actor);
  CHECK(world.actors.contains(5_actor));
}
