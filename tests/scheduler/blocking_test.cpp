#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("tasks that wait for tasks, ten deep on one CPU, finish", "[scheduler][blocking]") {
  World world;
  const auto node = world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  std::vector<LeaseGranted> chain;
  auto caller = driver;
  for (int depth = 0; depth < 10; ++depth) {
    const auto request = world.ask_lease(caller, cpus(1));
    if (depth > 0) world.step(ProcessBlocked{caller});
    REQUIRE(world.lease_of(request));
    chain.push_back(*world.lease_of(request));
    caller = chain.back().process;
  }
  CHECK(world.node(node).blocked == 9);

  // The deepest one returns; each caller goes on, finishes and gives its own lease back.
  while (chain.size() > 1) {
    const auto done = chain.back();
    chain.pop_back();
    world.step(ProcessUnblocked{chain.back().process});
    CHECK_FALSE(world.resumed.contains(chain.back().process));
    CHECK(world.recalled.contains(done.lease));
    world.give_back(done.lease);
    CHECK(world.resumed.contains(chain.back().process));
  }
  world.give_back(chain.back().lease);
  CHECK(world.is_idle());
}

TEST_CASE(
    "who has what it waited for comes before all new requests, also while only a part of its CPU "
    "is free",
    "[scheduler][blocking]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  const auto waiter = world.lease_of(world.ask_lease(driver, cpus(1)))->process;
  world.step(ProcessBlocked{waiter});
  const auto first = *world.lease_of(world.ask_lease(waiter, cpus(0.5)));
  const auto second = *world.lease_of(world.ask_lease(waiter, cpus(0.5)));
  const auto later = world.ask_lease(driver, cpus(0.5));
  world.step(ProcessUnblocked{waiter});
  CHECK_FALSE(world.resumed.contains(waiter));

  world.give_back(first.lease);
  CHECK(world.reason_of(later) ==
        "the next CPU of 'a' (node 1) goes to a process there that has what it waited for");
  world.give_back(second.lease);
  CHECK(world.resumed.contains(waiter));
  CHECK_FALSE(world.lease_of(later));
}

TEST_CASE("it runs on in debt where an actor took its CPU for good, and is given the next one",
          "[scheduler][blocking]") {
  World world;
  const auto node = world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  const auto lease = *world.lease_of(world.ask_lease(driver, cpus(1)));
  world.step(ProcessBlocked{lease.process});
  world.ask_actor(1_actor, lease.process, cpus(1));
  REQUIRE(world.actors.contains(1_actor));
  world.step(ProcessUnblocked{lease.process});
  CHECK_FALSE(world.resumed.contains(lease.process));
  world.wait(500ms);
  CHECK(world.resumed.contains(lease.process));

  const auto later = world.ask_lease(driver, cpus(1));
  world.release_actor(1_actor);
  CHECK_FALSE(world.lease_of(later));
  CHECK(world.node(node).free.empty());
  world.give_back(lease.lease);
  CHECK(world.lease_of(later));
}

TEST_CASE("only the CPU is given back while a process waits", "[scheduler][blocking]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}, {"memory", 8}}, 1);
  const auto driver = world.start_job(1_job);
  const Need need{{{"cpu", 2}, {"gpu", 1}, {"memory", 5}}, {}, false};
  const auto process = world.lease_of(world.ask_lease(driver, need))->process;
  world.step(ProcessBlocked{process});
  CHECK(world.node(node).free == Resources{{"cpu", 2}, {"memory", 3}});
  world.step(ProcessUnblocked{process});
  CHECK(world.node(node).free == Resources{{"memory", 3}});
  CHECK(world.resumed.contains(process));
}

TEST_CASE("an actor that returns its resources lives on, and others get all of them",
          "[scheduler][blocking]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}, {"memory", 8}}, 1);
  const auto driver = world.start_job(1_job);
  const Need need{{{"cpu", 2}, {"gpu", 1}, {"memory", 5}}, {}, false};
  const auto all = world.node(node).free;
  world.ask_actor(1_actor, driver, need, "first");
  const auto process = world.actors.at(1_actor).process;
  world.ask_actor(2_actor, driver, need);
  CHECK_FALSE(world.actors.contains(2_actor));
  world.step(ResourcesReturned{process});
  CHECK(world.actors.contains(2_actor));
  CHECK(world.state.actor_named(1_job, "first"));
  world.step(ResourcesReturned{process});
  world.release_actor(2_actor);
  CHECK(world.node(node).free == all);
  world.release_actor(1_actor);
  CHECK(world.is_idle());
}

TEST_CASE("an actor that returns its resources as it waits for its CPU goes on without it",
          "[scheduler][blocking]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(1));
  const auto process = world.actors.at(1_actor).process;
  world.step(ProcessBlocked{process});
  world.ask_actor(2_actor, driver, cpus(1));
  world.step(ProcessUnblocked{process});
  CHECK_FALSE(world.resumed.contains(process));
  world.step(ResourcesReturned{process});
  CHECK(world.resumed.contains(process));
  world.release_actor(2_actor);
  CHECK(world.is_idle());
  world.step(ProcessBlocked{process});
  world.step(ProcessUnblocked{process});
  CHECK(world.is_idle());
}

TEST_CASE("only an actor returns its resources for good", "[scheduler][blocking]") {
  World world;
  const auto node = world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  const auto lease = *world.lease_of(world.ask_lease(driver, cpus(1)));
  for (const auto process : {lease.process, driver}) world.step(ResourcesReturned{process});
  CHECK(world.node(node).free.empty());
}

TEST_CASE("chains are bounded, the bound is the reason, and after a while it refuses",
          "[scheduler][blocking]") {
  Options options;
  options.lease_processes_per_cpu = 4;
  World world{options};
  world.join("a", {{"cpu", 1}});
  auto caller = world.start_job(1_job);
  RequestId last;
  for (int depth = 0; depth < 5; ++depth) {
    last = world.ask_lease(caller, cpus(1));
    if (depth > 0) world.step(ProcessBlocked{caller});
    if (const auto lease = world.lease_of(last)) caller = lease->process;
  }
  const std::string bound =
      "worker processes whose tasks wait for tasks have reached lease_processes_per_cpu, 4 per "
      "CPU: nest fewer tasks in one another, or add CPUs";
  CHECK(world.reason_of(last) == bound);
  world.wait(1s);
  CHECK(world.seen<Refused>().empty());
  world.wait(5s);  // long enough for room to be kept for it
  CHECK(world.reason_of(last) == bound);
  world.wait(26s);
  CHECK(world.seen<Refused>().at(0).kind == Refused::Kind::Limit);
  CHECK(world.seen<Refused>().at(0).reason == bound);
}
