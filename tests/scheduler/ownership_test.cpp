#include "picture.hpp"
#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Two jobs on two nodes; the first has a lease, an actor, a gang and a request that waits, made by
/// its driver.
struct Scene {
  World world;
  NodeId node = world.join("a", {{"cpu", 4}});
  NodeId other_node = world.join("b", {{"cpu", 1}});
  ProcessId owner = world.start_job(1_job);
  ProcessId stranger = world.start_job(2_job);
  LeaseGranted lease = *world.lease_of(world.ask_lease(owner, cpus(1)));
  ProcessId own_worker = lease.process;

  Scene() {
    world.ask_actor(5_actor, owner, cpus(1), "name");
    world.ask_gang(6_gang, owner, 2, cpus(1));
  }
  ProcessId actor_process() const { return world.actors.at(5_actor).process; }

  /// Nothing happens, and nothing can be seen to have changed.
  void check_ignored(const Event& event) {
    world.step(Tick{});
    const auto before = picture(world.state);
    CHECK(world.apply(event).empty());
    CHECK(picture(world.state) == before);
  }
};

}  // namespace

TEST_CASE("what a job has, no other job can give back, end or withdraw", "[scheduler][ownership]") {
  Scene scene;
  const auto waiting = scene.world.ask_lease(scene.owner, cpus(4));
  for (const ProcessId by : {scene.stranger, ProcessId{}, 999_process}) {
    scene.check_ignored(LeaseReturned{scene.lease.lease, by});
    scene.check_ignored(ActorReleased{5_actor, by, "a guess"});
    scene.check_ignored(GangReleased{6_gang, by, "a guess"});
    scene.check_ignored(RequestWithdrawn{waiting, by});
  }
  scene.world.step(LeaseReturned{scene.lease.lease, scene.owner});
  CHECK(scene.world.leases.empty());
  scene.world.step(RequestWithdrawn{waiting, scene.owner});
  CHECK(scene.world.reason_of(waiting) == "not pending");
}

TEST_CASE(
    "of its own job, a process may end any actor, and only gangs and leases that it asked for "
    "itself",
    "[scheduler][ownership]") {
  Scene scene;
  scene.check_ignored(LeaseReturned{scene.lease.lease, scene.own_worker});
  scene.check_ignored(GangReleased{6_gang, scene.own_worker, "a guess"});
  scene.world.step(ActorReleased{5_actor, scene.own_worker, "its last handle went"});
  CHECK_FALSE(scene.world.state.actor(5_actor));
  scene.world.step(GangReleased{6_gang, scene.owner, "done"});
  CHECK_FALSE(scene.world.state.gang(6_gang));
}

TEST_CASE("a process is ready, and ends, by the word of its own node in its current incarnation",
          "[scheduler][ownership]") {
  Scene scene;
  const auto process = scene.actor_process();
  const auto home = scene.world.started.at(process).node;
  const auto other = home == scene.node ? scene.other_node : scene.node;
  for (const auto& [node, incarnation] :
       {std::pair<NodeId, Incarnation>{other, 1_life}, {home, 2_life}, {home, {}}, {}}) {
    scene.check_ignored(ProcessExited{process, node, incarnation, "a lie"});
    scene.check_ignored(ProcessExited{scene.owner, node ? node : other, incarnation, "a lie"});
  }
  scene.world.step(ProcessExited{process, home, 1_life, "killed by signal 9"});
  CHECK(scene.world.seen<ActorLost>().size() == 1);

  scene.world.apply(
      ActorAsked{scene.world.next_request(), 7_actor, 1_job, scene.owner, cpus(1), "", ""});
  if (!scene.world.starting.empty()) {
    const auto start = scene.world.starting.begin()->second;
    scene.check_ignored(ProcessReady{start.process, other, 1_life});
    scene.check_ignored(ProcessReady{start.process, start.node, 2_life});
  }
  scene.world.settle();
  CHECK(scene.world.actors.contains(7_actor));
}

TEST_CASE("an actor's id that is taken is refused to the second, and the first stays what it was",
          "[scheduler][ownership]") {
  Scene scene;
  auto& world = scene.world;
  for (const auto& [requester, job] :
       {std::pair<ProcessId, JobId>{scene.stranger, 2_job}, {scene.owner, 1_job}}) {
    const auto before = world.state.actor(5_actor);
    world.step(ActorAsked{world.next_request(), 5_actor, job, requester, cpus(1), "another",
                          "another type"});
    CHECK(world.refusal() == "actor 5 is there already, made by process 1 of job 1");
    CHECK(world.state.actor(5_actor)->type == before->type);
    CHECK(world.state.actor(5_actor)->process == before->process);
    CHECK_FALSE(world.state.actor_named(1_job, "another"));
  }
}

TEST_CASE(
    "who dies takes no process of another job with it, and a job asks for its own processes alone",
    "[scheduler][ownership]") {
  Scene scene;
  scene.world.step(LeaseAsked{scene.world.next_request(), 1_job, scene.stranger, cpus(1)});
  CHECK(scene.world.refusal() == "process 2, which asks, is not running in job 1");
  const auto before = scene.world.state.actors().size();
  scene.world.step(ProcessExited{scene.stranger, {}, {}, "its connection closed"});
  CHECK(scene.world.state.actors().size() == before);
}
