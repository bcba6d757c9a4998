#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

const Need kSpecial{{{"cpu", 1}, {"special", 1}}, {}, false};
const auto kPatience = Options{}.rejoin_patience;

/// Two nodes, of which the second alone has what is special.
struct RejoinScene {
  World world;
  NodeId plain = world.join("w1", {{"cpu", 4}});
  NodeId special = world.join("w2", {{"cpu", 1}, {"special", 1}});
  ProcessId driver = world.start_job(1_job);

  void lose_special() { world.step(NodeLost{special, 1_life, "its connection closed"}); }
  bool is_pending(RequestId request) const { return world.reason_of(request) != "not pending"; }
};

}  // namespace

TEST_CASE(
    "what only a node that left could hold waits for it, says so, and is served when it is back",
    "[scheduler][rejoin]") {
  RejoinScene scene;
  auto& world = scene.world;
  const auto running = *world.lease_of(world.ask_lease(scene.driver, kSpecial));
  const auto task = world.ask_lease(scene.driver, kSpecial);
  const auto actor = world.ask_actor(1_actor, scene.driver, kSpecial);
  scene.lose_special();
  CHECK(world.seen<LeaseLost>().at(0).lease == running.lease);
  CHECK(world.seen<Refused>().empty());
  const auto again = world.ask_lease(scene.driver, kSpecial);  // of the task that ran
  world.wait(3s);
  for (const auto request : {task, actor, again}) {
    CHECK(world.reason_of(request) ==
          "waits for a node with cpu 1, special 1: 'w2' (node 2), which had it, left 3 s ago; "
          "waits until 60 s");
  }
  world.join("w2", {{"cpu", 1}, {"special", 1}});
  REQUIRE(world.lease_of(task));
  world.give_back(world.lease_of(task)->lease);
  CHECK(world.actors.contains(1_actor));
  world.release_actor(1_actor);
  CHECK(world.lease_of(again));
}

TEST_CASE("after its patience it is refused, with what it waited for",
          "[scheduler][rejoin][refusal]") {
  RejoinScene scene;
  auto& world = scene.world;
  world.ask_actor(1_actor, scene.driver, kSpecial);
  const auto waiting = world.ask_lease(scene.driver, kSpecial);
  scene.lose_special();
  world.wait(kPatience - 1s);
  CHECK(world.seen<Refused>().empty());
  // Waits for the rest of the same patience.
  const auto late = world.ask_lease(scene.driver, kSpecial);
  CHECK(scene.is_pending(late));
  world.wait(1s);
  CHECK(world.seen<Refused>().size() == 2);
  CHECK(world.refusal() ==
        "no node has cpu 1, special 1; the closest is 'w1' (node 1) with special 0: lacks special "
        "1; 'w2' (node 2) left 60 s ago and has not come back");
  CHECK_FALSE(scene.is_pending(waiting));
  CHECK_FALSE(scene.is_pending(late));
  world.wait(1s);
  world.ask_lease(scene.driver, kSpecial);
  CHECK(
      world.refusal() ==
      "no node has cpu 1, special 1; the closest is 'w1' (node 1) with special 0: lacks special 1");
}

TEST_CASE("what no node of the last while could hold is refused at once",
          "[scheduler][rejoin][refusal]") {
  RejoinScene scene;
  auto& world = scene.world;
  scene.lose_special();
  world.ask_lease(scene.driver, {{{"special", 2}}, {}, false});
  CHECK(world.seen<Refused>().size() == 1);
  world.ask_lease(scene.driver, {{{"special", 1}}, {{"zone", "a"}}, false});
  CHECK(world.seen<Refused>().size() == 1);
  world.ask_gang(1_gang, scene.driver, 2, kSpecial);
  CHECK(world.seen<Refused>().size() == 1);
}

TEST_CASE("a gang waits for the nodes that all together could hold it", "[scheduler][rejoin]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto b = world.join("b", {{"cpu", 2}});
  const auto c = world.join("c", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.step(NodeLost{b, 1_life, "it was stopped"});
  world.wait(10s);
  world.step(NodeLost{c, 1_life, "it was stopped"});
  const auto gang = world.ask_gang(1_gang, driver, 6, cpus(1));
  CHECK(world.reason_of(gang) ==
        "waits for room for 6 ranks of cpu 1: 'b' (node 2), which had it, left 10 s ago; waits "
        "until 60 s");
  const auto smaller = world.ask_gang(2_gang, driver, 3, cpus(1));
  CHECK_THAT(world.reason_of(smaller), Catch::Contains("'c' (node 3), which had it, left 0 s ago"));
  world.ask_gang(3_gang, driver, 7, cpus(1));
  CHECK(world.seen<Refused>().size() == 1);
  world.step(RequestWithdrawn{smaller, driver});
  world.join("b", {{"cpu", 2}});
  world.join("c", {{"cpu", 2}});
  CHECK(world.gangs.contains(1_gang));
}

TEST_CASE("when all nodes have left, what they could hold waits as long as when some are there",
          "[scheduler][rejoin]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.step(NodeLost{node, 1_life, "it was stopped"});
  const auto gang = world.ask_gang(1_gang, driver, 2, cpus(1));
  world.wait(kPatience - 1s);
  CHECK(world.reason_of(gang) ==
        "waits for room for 2 ranks of cpu 1: 'a' (node 1), which had it, left 59 s ago; waits "
        "until 60 s");
  world.join("a", {{"cpu", 2}});
  CHECK(world.gangs.contains(1_gang));
}

TEST_CASE("a node that comes back with less is not waited for once more",
          "[scheduler][rejoin][refusal]") {
  RejoinScene scene;
  auto& world = scene.world;
  scene.lose_special();
  world.join("w2", {{"cpu", 1}});
  world.ask_lease(scene.driver, kSpecial);
  CHECK(world.seen<Refused>().size() == 1);
}

TEST_CASE("a node is not waited for by its own label, which no other will carry",
          "[scheduler][rejoin][refusal]") {
  World world;
  world.join("a", {{"cpu", 1}});
  world.step(NodeJoined{9_node, 1_life, "b", {{"cpu", 1}}, 0, {{"zone", "x"}}, {{"number", "9"}}});
  const auto driver = world.start_job(1_job);
  REQUIRE(world.lease_of(world.ask_lease(driver, {{{"cpu", 1}}, {{"number", "9"}}, false})));
  world.step(NodeLost{9_node, 1_life, "it was stopped"});
  world.ask_lease(driver, {{{"cpu", 1}}, {{"number", "9"}}, false});
  CHECK(world.refusal() == "no node has number=9; the closest is 'a' (node 1) with no labels");
  const auto zone = world.ask_lease(driver, {{{"cpu", 1}}, {{"zone", "x"}}, false});
  CHECK_THAT(world.reason_of(zone),
             Catch::StartsWith("waits for a node with cpu 1 with label zone=x"));
}

TEST_CASE(
    "the driver is told what it waits for, and no lease is recalled for what no node can hold",
    "[scheduler][rejoin][notice]") {
  RejoinScene scene;
  auto& world = scene.world;
  const auto other = world.start_job(2_job);
  REQUIRE(world.lease_of(world.ask_lease(other, cpus(4), 2_job)));
  REQUIRE(world.lease_of(world.ask_lease(scene.driver, kSpecial)));
  scene.lose_special();
  world.ask_lease(scene.driver, kSpecial);
  world.wait(Options{}.notice_after);
  REQUIRE(world.seen<StillWaits>().size() == 1);
  CHECK_THAT(world.seen<StillWaits>()[0].reason,
             Catch::StartsWith("waits for a node with cpu 1, special 1"));
  CHECK(world.recalled.empty());
}

TEST_CASE("of many nodes that left, the latest are waited for", "[scheduler][rejoin]") {
  Options options;
  options.departed_nodes = 2;
  World world{options};
  const auto driver = world.start_job(1_job);
  world.join("stays", {{"cpu", 1}});
  for (const std::string name : {"x", "y", "z"}) {
    const auto node = world.join(name, {{"cpu", 1}, {name, 1}});
    world.step(NodeLost{node, 1_life, "it was stopped"});
  }
  const auto of = [](const std::string& name) { return Need{{{name, 1}}, {}, false}; };
  world.ask_lease(driver, of("x"));
  CHECK(world.seen<Refused>().size() == 1);
  world.ask_lease(driver, of("y"));
  world.ask_lease(driver, of("z"));
  CHECK(world.state.pending().size() == 2);
}
