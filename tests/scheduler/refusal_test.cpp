#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("what can never be is refused at once, naming what is missing and the closest node",
          "[scheduler][refusal]") {
  World world;
  world.join("a", {{"cpu", 2}}, 1);
  const auto driver = world.start_job(1_job);

  world.ask_lease(driver, gpus(4));
  CHECK(world.refusal() ==
        "no node has cpu 1, gpu 4; the closest is 'a' (node 1) with gpu 1: lacks gpu 3");
  world.ask_actor(1_actor, driver, {{{"cpu", 1}}, {{"zone", "b"}}, false});
  CHECK(world.refusal() == "no node has zone=b; the closest is 'a' (node 1) with no labels");
  world.ask_gang(1_gang, driver, 3, cpus(1));
  CHECK(world.refusal() == "all nodes together hold 2 of the 3 ranks of cpu 1, even when idle");
  world.ask_gang(1_gang, driver, 2, cpus(1), Strategy::StrictSpread);
  CHECK(world.refusal() ==
        "2 ranks of cpu 1 need as many nodes, and 1 has room for one even when idle");
  world.ask_gang(1_gang, driver, 0, cpus(1));
  CHECK(world.refusal() == "a gang has at least one rank");
  CHECK(world.is_idle());
}

TEST_CASE(
    "a name that is taken is refused, naming its holder, and is free again once the actor is gone",
    "[scheduler][refusal]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(1), "x");
  world.ask_actor(2_actor, driver, cpus(1), "x");
  CHECK(world.seen<Refused>().at(0).kind == Refused::Kind::NameTaken);
  CHECK(world.refusal() == "the name 'x' is taken by actor 1 of job 1");
  world.release_actor(1_actor);
  world.ask_actor(2_actor, driver, cpus(1), "x");
  CHECK(world.state.actor_named(1_job, "x")->actor == 2_actor);
}

TEST_CASE("a plain name is its job's own, and one with a namespace is the cluster's",
          "[scheduler][refusal]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  world.ask_actor(1_actor, first, cpus(1), "x");
  world.ask_actor(2_actor, second, cpus(1), "x", 2_job);
  CHECK(world.seen<Refused>().empty());
  CHECK(world.state.actor_named(1_job, "x")->actor == 1_actor);
  CHECK(world.state.actor_named(2_job, "x")->actor == 2_actor);
  world.ask_actor(3_actor, first, cpus(1), "shared/x");
  world.ask_actor(4_actor, second, cpus(1), "shared/x", 2_job);
  CHECK(world.refusal() == "the name 'shared/x' is taken by actor 3 of job 1");
  CHECK(world.state.actor_named(2_job, "shared/x")->actor == 3_actor);
}

TEST_CASE("requests wait for a first node for a while, then they are refused",
          "[scheduler][refusal]") {
  World world;
  const auto driver = world.start_job(1_job);
  const auto request = world.ask_lease(driver, cpus(2));
  CHECK(world.reason_of(request) == "no node has joined yet");
  world.wait(9s);
  CHECK(world.seen<Refused>().empty());

  SECTION("no node joins") {
    world.wait(2s);
    CHECK(world.refusal() == "no node has joined yet");
  }
  SECTION("a node joins that cannot hold it: another may still come") {
    world.join("a", {{"cpu", 1}});
    CHECK(world.reason_of(request) ==
          "waits for a node that can hold it: no node has cpu 2; the closest is 'a' (node 1) with "
          "cpu 1: lacks cpu 1");
    world.wait(2s);
    CHECK(world.refusal() ==
          "no node has cpu 2; the closest is 'a' (node 1) with cpu 1: lacks cpu 1");
  }
  SECTION("a node joins that can") {
    world.join("a", {{"cpu", 2}});
    CHECK(world.lease_of(request));
  }
  CHECK((world.state.pending().empty()));
}

TEST_CASE("events of an older life of a node are ignored", "[scheduler][node]") {
  World world;
  const auto node = world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  world.step(NodeJoined{node, 2_life, "a", {{"cpu", 2}}, 0, {}});
  world.ask_lease(driver, cpus(2));
  CHECK(world.leases.size() == 1);
  world.step(NodeLost{node, 1_life, "late"});
  world.step(NodeJoined{node, 1_life, "a", {{"cpu", 9}}, 0, {}});
  CHECK(world.leases.size() == 1);
  CHECK(world.node(node).total == Resources{{"cpu", 2}});
}

TEST_CASE("who is not there can ask for nothing", "[scheduler][refusal]") {
  World world;
  world.join("a", {{"cpu", 1}});
  world.start_job(1_job);
  world.ask_lease(99_process, cpus(1));
  CHECK(world.refusal() == "process 99, which asks, is not running in job 1");
}
