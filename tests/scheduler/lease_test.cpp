#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("a lease is granted once its worker process is ready", "[scheduler][lease]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);

  world.apply(LeaseAsked{7_request, 1_job, driver, cpus(1)});
  const auto started = world.seen<StartProcess>();
  REQUIRE(started.size() == 1);
  CHECK(started[0].node == node);
  CHECK(started[0].gpus.empty());
  CHECK(world.reason_of(7_request) == "worker process 2 is starting on 'a' (node 1)");

  world.ready(started[0].process);
  const auto granted = world.seen<LeaseGranted>();
  REQUIRE(granted.size() == 1);
  CHECK(granted[0].request == 7_request);
  CHECK(granted[0].process == started[0].process);
  CHECK(world.node(node).free == Resources{{"cpu", 1}});
}

TEST_CASE("a worker process is used again by the next lease of its job, and by no other job",
          "[scheduler][lease]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);

  const auto lease = *world.lease_of(world.ask_lease(first, cpus(1)));
  world.give_back(lease.lease);
  CHECK(world.seen<StopProcess>().empty());

  CHECK(world.lease_of(world.ask_lease(second, cpus(1), 2_job))->process != lease.process);
  CHECK(world.lease_of(world.ask_lease(first, cpus(1)))->process == lease.process);
}

TEST_CASE("a worker process that saw a GPU is stopped, and the GPU stays taken until it is gone",
          "[scheduler][lease]") {
  World world;
  const auto node = world.join("a", {{"cpu", 4}}, 1);
  const auto driver = world.start_job(1_job);
  const auto lease = *world.lease_of(world.ask_lease(driver, gpus(1)));

  world.apply(LeaseReturned{lease.lease, driver});
  CHECK(world.seen<StopProcess>().size() == 1);
  CHECK(world.node(node).gpu_free[0].is_zero());
  const auto next = world.next_request();
  world.apply(LeaseAsked{next, 1_job, driver, gpus(1)});
  CHECK_FALSE(world.lease_of(next));

  world.settle();
  REQUIRE(world.lease_of(next));
  CHECK(world.lease_of(next)->process != lease.process);
}

TEST_CASE(
    "idle worker processes are stopped after the idle time, and above the number that a node keeps",
    "[scheduler][lease]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  std::vector<LeaseGranted> leases;
  for (int i = 0; i < 4; ++i) leases.push_back(*world.lease_of(world.ask_lease(driver, cpus(0.5))));
  for (const auto& lease : leases) world.give_back(lease.lease);
  CHECK(world.node(node).idle == 2);
  world.wait(9s);
  CHECK(world.node(node).idle == 2);
  world.wait(2s);
  CHECK(world.node(node).processes == 0);
}

TEST_CASE(
    "an idle worker process of whose values others have refs is kept, beside as many others as "
    "ever, until they have none",
    "[scheduler][lease]") {
  World world;
  const auto node = world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  std::vector<LeaseGranted> leases;
  for (int i = 0; i < 4; ++i) leases.push_back(*world.lease_of(world.ask_lease(driver, cpus(0.5))));
  const auto owner = leases.front().process;
  world.step(ValuesHeld{owner, true});
  for (const auto& lease : leases) world.step(LeaseReturned{lease.lease, driver});
  CHECK(world.node(node).idle == 3);
  world.wait(30s);
  CHECK(world.node(node).processes == 1);
  CHECK(world.state.process(owner));
  // It is of use meanwhile.
  CHECK(world.lease_of(world.ask_lease(driver, cpus(1)))->process == owner);
  world.step(LeaseReturned{world.leases.begin()->first, driver});
  world.step(ValuesHeld{owner, false});
  world.wait(11s);
  CHECK(world.node(node).processes == 0);
}

TEST_CASE("a worker process that does not start refuses the request with the cause",
          "[scheduler][lease]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.apply(LeaseAsked{1_request, 1_job, driver, cpus(1)});
  world.exit(world.starting.begin()->first, "no such file");
  const auto refused = world.seen<Refused>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].kind == Refused::Kind::Failed);
  CHECK(refused[0].reason == "worker process 2 on 'a' (node 1) did not start: no such file");
  CHECK(world.is_idle());
}

TEST_CASE("a lease whose process dies is lost with the cause, and what it held is free",
          "[scheduler][lease]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  const auto lease = *world.lease_of(world.ask_lease(driver, cpus(2)));
  world.exit(lease.process, "killed by signal 9");
  const auto lost = world.seen<LeaseLost>();
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].cause == "killed by signal 9");
  CHECK(lost[0].requester == driver);
  CHECK(world.is_idle());
}

TEST_CASE("when a requester dies its leases end and its requests are forgotten",
          "[scheduler][lease]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  const auto parent = world.lease_of(world.ask_lease(driver, cpus(1)))->process;
  const auto child = world.lease_of(world.ask_lease(parent, cpus(1)))->process;
  world.ask_lease(parent, cpus(1));
  CHECK(world.state.pending().size() == 1);

  world.exit(parent, "killed by signal 11");
  world.settle();
  CHECK_FALSE(world.state.process(child));
  CHECK(world.is_idle());
}

TEST_CASE(
    "a request that is withdrawn is not answered, and the process that started for it serves the "
    "next",
    "[scheduler][lease]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  world.apply(LeaseAsked{1_request, 1_job, driver, cpus(1)});
  const auto process = world.starting.begin()->first;
  world.apply(RequestWithdrawn{1_request, driver});
  world.apply(LeaseAsked{2_request, 1_job, driver, cpus(1)});
  world.settle();
  CHECK(world.lease_of(2_request)->process == process);
  CHECK_FALSE(world.lease_of(1_request));

  world.ask_lease(driver, cpus(1));
  const auto waiting = world.state.pending().front().request;
  world.step(RequestWithdrawn{waiting, driver});
  CHECK(world.state.pending().empty());
}

TEST_CASE("when a job ends its processes are stopped and its requests dropped",
          "[scheduler][job]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_lease(driver, cpus(1));
  world.ask_actor(5_actor, driver, cpus(1), "x");
  world.ask_gang(6_gang, driver, 2, cpus(1));
  CHECK(world.state.pending().size() == 1);

  SECTION("as told") { world.step(JobEnded{1_job, "done"}); }
  SECTION("because its driver is gone") { world.exit(driver, "its connection closed"); }
  world.settle();
  CHECK(world.is_idle());
  CHECK(world.state.processes().empty());
  CHECK(world.state.jobs().empty());
  CHECK_FALSE(world.state.actor_named(1_job, "x"));

  world.ask_lease(driver, cpus(1));
  CHECK(world.refusal() == "job 1 is not running");
}
