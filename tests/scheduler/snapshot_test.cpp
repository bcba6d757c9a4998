// What a state tells of what processes hold.
#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

Resources held_by(const World& world, ProcessId process) {
  const auto view = world.state.process(process);
  REQUIRE(view);
  return view->held;
}

}  // namespace

TEST_CASE("what a process holds is told as long as nobody else can have it",
          "[scheduler][snapshot]") {
  World world;
  const auto node = world.join("a", {{"cpu", 4}, {"memory", 8}}, 1);
  const auto driver = world.start_job(1_job);
  CHECK(held_by(world, driver).empty());

  const auto lease =
      *world.lease_of(world.ask_lease(driver, {{{"cpu", 2}, {"memory", 5}}, {}, false}));
  CHECK(held_by(world, lease.process) == Resources{{"cpu", 2}, {"memory", 5}});
  world.step(ProcessBlocked{lease.process});  // its CPU is lent
  CHECK(held_by(world, lease.process) == Resources{{"memory", 5}});
  world.step(ProcessUnblocked{lease.process});
  CHECK(held_by(world, lease.process) == Resources{{"cpu", 2}, {"memory", 5}});
  world.give_back(lease.lease);
  REQUIRE(world.state.process(lease.process)->state == ProcessState::Idle);
  CHECK(held_by(world, lease.process).empty());

  world.ask_actor(1_actor, driver, gpus(0.5));
  const auto actor = world.actors.at(1_actor).process;
  CHECK(held_by(world, actor) == Resources{{"cpu", 1}, {"gpu", 0.5}});
  world.apply(ActorReleased{1_actor, driver, "done"});
  REQUIRE(world.state.process(actor)->use.empty());
  CHECK(held_by(world, actor) == Resources{{"cpu", 1}, {"gpu", 0.5}});  // until it has ended
  world.settle();
  CHECK_FALSE(world.state.process(actor));
  CHECK(world.node(node).free == world.node(node).total);
}

TEST_CASE("what processes hold is in all what is not free on their nodes",
          "[scheduler][snapshot]") {
  World world;
  const auto first = world.join("a", {{"cpu", 3}});
  const auto second = world.join("b", {{"cpu", 3}});
  const auto driver = world.start_job(1_job);
  world.ask_gang(1_gang, driver, 4, cpus(1));
  world.ask_actor(1_actor, driver, cpus(0.5));
  world.ask_lease(driver, cpus(1));
  std::map<NodeId, Resources> held;
  for (const auto& process : world.state.processes()) held[process.node] += process.held;
  for (const auto node : {first, second}) {
    auto total = world.node(node).free;
    total += held[node];
    CHECK(total == world.node(node).total);
  }
}
