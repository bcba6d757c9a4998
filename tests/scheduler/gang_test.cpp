#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("a gang is placed once all its processes are ready, with ranks, local ranks and GPUs",
          "[scheduler][gang]") {
  World world;
  const auto a = world.join("a", {{"cpu", 8}}, 2);
  const auto b = world.join("b", {{"cpu", 8}}, 1);
  const auto driver = world.start_job(1_job);

  world.apply(GangAsked{1_request, 5_gang, 1_job, driver, 3, gpus(1), Strategy::Pack});
  const auto started = world.seen<StartProcess>();
  REQUIRE(started.size() == 3);
  CHECK(started[0].gpus == std::vector<GpuIndex>{0, 1});
  CHECK(started[1].gpus == std::vector<GpuIndex>{0, 1});
  CHECK(started[2].gpus == std::vector<GpuIndex>{0});
  world.ready(started[0].process);
  world.ready(started[2].process);
  CHECK(world.gangs.empty());
  CHECK(world.reason_of(1_request) ==
        "2 of its 3 worker processes are ready; worker process 3 is starting on 'a' (node 1)");
  world.ready(started[1].process);

  const auto& members = world.gangs.at(5_gang).members;
  CHECK(members == std::vector<Member>{{started[0].process, a, {0}, 0, 0},
                                       {started[1].process, a, {1}, 1, 0},
                                       {started[2].process, b, {0}, 0, 1}});
  CHECK(world.state.gangs().at(0).stage == Stage::Placed);
}

TEST_CASE("ranks that share a GPU see it once", "[scheduler][gang]") {
  World world;
  world.join("a", {{"cpu", 8}}, 1);
  const auto driver = world.start_job(1_job);
  world.apply(GangAsked{1_request, 5_gang, 1_job, driver, 2, gpus(0.5), Strategy::Pack});
  for (const auto& start : world.seen<StartProcess>())
    CHECK(start.gpus == std::vector<GpuIndex>{0});
}

TEST_CASE("a gang whose process does not start is refused, and nothing of it is left",
          "[scheduler][gang]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  world.apply(GangAsked{1_request, 5_gang, 1_job, driver, 3, cpus(1), Strategy::Pack});
  const auto started = world.seen<StartProcess>();
  world.ready(started[0].process);
  world.exit(started[1].process, "exit code 3");
  CHECK(world.refusal() == "worker process 3 on 'a' (node 1) did not start: exit code 3");
  CHECK(world.is_idle());
  CHECK(world.state.gangs().empty());
  world.settle();
  world.wait(11s);
  CHECK(world.node(1_node).processes == 0);
}

TEST_CASE("a gang whose node is lost while it starts waits again, and is placed elsewhere",
          "[scheduler][gang]") {
  World world;
  world.join("a", {{"cpu", 2}});
  world.join("b", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.apply(GangAsked{1_request, 5_gang, 1_job, driver, 4, cpus(1), Strategy::Spread});
  const auto started = world.seen<StartProcess>();
  for (std::size_t i = 0; i < 3; ++i) world.ready(started[i].process);
  world.apply(NodeJoined{3_node, 1_life, "c", {{"cpu", 2}}, 0, {}});
  world.apply(NodeLost{2_node, 1_life, "its connection closed"});
  CHECK(world.seen<Refused>().empty());
  world.settle();
  REQUIRE(world.gangs.contains(5_gang));
  for (const auto& member : world.gangs.at(5_gang).members) CHECK(member.node != 2_node);
}

TEST_CASE(
    "a dead rank is reported and its resources are free; the others live until the gang is "
    "released",
    "[scheduler][gang]") {
  World world;
  const auto node = world.join("a", {{"cpu", 3}});
  const auto driver = world.start_job(1_job);
  world.ask_gang(5_gang, driver, 3, cpus(1));
  const auto members = world.gangs.at(5_gang).members;
  world.exit(members[1].process, "killed by signal 9");
  const auto broken = world.seen<GangBroken>();
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].rank == 1);
  CHECK(broken[0].cause == "killed by signal 9");
  CHECK(world.node(node).free == Resources{{"cpu", 1}});
  CHECK(world.state.gangs().at(0).stage == Stage::Broken);
  world.release_gang(5_gang);
  CHECK(world.is_idle());
}

TEST_CASE("two gangs that could each get half of the cluster both finish", "[scheduler][gang]") {
  World world;
  world.join("a", {{"cpu", 2}});
  world.join("b", {{"cpu", 2}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  world.apply(GangAsked{1_request, 1_gang, 1_job, first, 3, cpus(1), Strategy::Pack});
  world.apply(GangAsked{2_request, 2_gang, 2_job, second, 3, cpus(1), Strategy::Pack});
  world.settle();
  CHECK(world.gangs.contains(1_gang));
  CHECK_FALSE(world.gangs.contains(2_gang));
  CHECK(world.reason_of(2_request) == "1 of its 3 ranks of cpu 1 have room now");
  world.release_gang(1_gang);
  CHECK(world.gangs.contains(2_gang));
  world.release_gang(2_gang);
  CHECK(world.is_idle());
}

TEST_CASE("gangs and actors share the fate of who asked for them", "[scheduler][gang]") {
  World world;
  world.join("a", {{"cpu", 8}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(1));
  const auto parent = world.actors.at(1_actor).process;
  world.ask_actor(2_actor, parent, cpus(1), "child");
  world.ask_gang(3_gang, world.actors.at(2_actor).process, 2, cpus(1));
  world.exit(parent, "exit code 1");
  CHECK(world.seen<ActorLost>().size() == 2);
  world.settle();
  CHECK(world.is_idle());
  CHECK(world.state.gangs().empty());
  CHECK_FALSE(world.state.actor_named(1_job, "child"));
}
