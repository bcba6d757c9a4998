#include "world.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// A requester that always wants one more lease than it has, and gives each back after its task, or
/// when recalled.
class Stream {
 public:
  Stream(World& world, ProcessId requester, JobId job)
      : world_{world}, requester_{requester}, job_{job} {}

  void keep_asking(Duration task) {
    for (auto& [request, ends] : tasks_) {
      const auto lease = world_.lease_of(request);
      if (lease && ends == TimePoint{}) ends = world_.now + task;
      if (!lease || ends > world_.now) continue;
      ++finished;
      world_.give_back(lease->lease);
      request = {};
    }
    std::erase_if(tasks_, [](const auto& entry) { return !entry.first; });
    while (world_.state.pending().size() < 6)
      tasks_.emplace_back(world_.ask_lease(requester_, cpus(1), job_), TimePoint{});
  }
  int finished = 0;

 private:
  World& world_;
  ProcessId requester_;
  JobId job_;
  std::vector<std::pair<RequestId, TimePoint>> tasks_;
};

}  // namespace

TEST_CASE("a gang as big as the cluster is not starved by a stream of small tasks",
          "[scheduler][fairness]") {
  World world;
  for (auto name : {"a", "b", "c"}) world.join(name, {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  Stream stream{world, driver, 1_job};
  stream.keep_asking(300ms);
  world.ask_gang(1_gang, world.start_job(2_job), 12, cpus(1), Strategy::Pack, 2_job);

  const auto patience = Options{}.patience;
  while (!world.gangs.contains(1_gang) && world.now < patience + 2s) {
    world.wait(100ms);
    stream.keep_asking(300ms);
  }
  CHECK(world.gangs.contains(1_gang));
  CHECK(stream.finished >= 12);
  world.release_gang(1_gang);
  const auto before = stream.finished;
  for (int i = 0; i < 10; ++i) {
    world.wait(100ms);
    stream.keep_asking(300ms);
  }
  CHECK(stream.finished > before);
}

TEST_CASE("the driver is told of an actor that waits long, once, and not of tasks in line",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_lease(driver, cpus(1));
  world.ask_lease(driver, cpus(2));
  const auto after = Options{}.notice_after;
  world.wait(after + 1s);
  CHECK(world.seen<StillWaits>().empty());

  world.ask_actor(1_actor, driver, cpus(2), "second");
  world.wait(after - 1s);
  CHECK(world.seen<StillWaits>().empty());
  world.wait(1s);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].driver == driver);
  CHECK(told[0].what == "actor 'second' of cpu 2");
  CHECK(told[0].waited == after);
  CHECK(told[0].reason == world.state.pending().back().reason);
  world.wait(after);
  CHECK(world.seen<StillWaits>().empty());
  world.wait(Options{}.notice_pause);
  CHECK(world.seen<StillWaits>().size() == 1);
}

TEST_CASE("who has waited long is told so by a tick, not by what happens in between",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(2));
  world.ask_actor(2_actor, driver, cpus(2));
  world.now += Options{}.notice_after;
  world.ask_lease(driver, cpus(1));
  CHECK(world.seen<StillWaits>().empty());
  world.wait(0ms);
  CHECK(world.seen<StillWaits>().size() == 1);
}

TEST_CASE("a driver whose actor waits is told that its others keep what they have",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  for (ActorId actor{1}; actor <= 3_actor; ++actor) world.ask_actor(actor, driver, cpus(1));
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0].reason,
             Catch::EndsWith(
                 "; 2 actors of this job keep what they were given until their last handles go"));
}

TEST_CASE("the driver is told of a gang that it stands still for, behind one of its own too",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_gang(1_gang, driver, 2, cpus(1), Strategy::Pack);
  world.ask_gang(2_gang, driver, 2, cpus(1), Strategy::Pack);
  world.wait(Options{}.notice_after);
  CHECK(world.seen<StillWaits>().empty());

  world.step(
      GangAsked{world.next_request(), 3_gang, 1_job, driver, 2, cpus(1), Strategy::Spread, true});
  world.ask_actor(1_actor, driver, cpus(2));
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 2);  // of the actor too: each kind has its own pause
  CHECK_THAT(told[0].what + told[1].what, Catch::Contains("gang 3"));
  CHECK_THAT(told[0].reason + told[1].reason,
             Catch::Contains("; this program's own gangs hold 2 of the cluster's 2 CPUs"));
  const auto& of_gang = told[told[0].what.starts_with("gang") ? 0 : 1];
  CHECK_THAT(
      of_gang.reason,
      Catch::EndsWith("; if it is to replace a gang of this program, it waits for the former "
                      "ranks to end: kill() the former gang, or let its last handle go, "
                      "before this one is made"));
}

TEST_CASE("the driver is told that a gang waits for former ranks that do not end",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_gang(1_gang, driver, 2, cpus(1), Strategy::Pack);
  world.apply(GangReleased{1_gang, driver, "done"});  // its ranks do not end
  world.apply(GangAsked{world.next_request(), 2_gang, 1_job, driver, 2, cpus(1), Strategy::Pack});
  world.now += Options{}.notice_after;
  world.apply(Tick{});
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK_THAT(
      told[0].reason,
      Catch::EndsWith("; it waits for 2 former worker processes of this job, which were told "
                      "to end and still hold a place"));
}

TEST_CASE("the driver is told of tasks and gangs that wait while the job has none",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  world.ask_actor(1_actor, world.start_job(1_job), cpus(2));
  const auto second = world.start_job(2_job), third = world.start_job(3_job);
  world.ask_lease(second, cpus(1), 2_job);
  world.ask_gang(1_gang, third, 2, cpus(1), Strategy::Pack, 3_job);
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 2);
  CHECK(told[0].driver == second);
  CHECK(told[1].driver == third);
}

TEST_CASE(
    "a driver whose actors hold half of the CPUs is told so once its tasks wait long for the rest",
    "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  world.join("b", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  for (ActorId actor{1}; actor <= 2_actor; ++actor) world.ask_actor(actor, driver, cpus(1));
  for (int i = 0; i < 3; ++i) world.ask_lease(driver, cpus(1));
  CHECK(world.leases.size() == 2);
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].what == "lease of cpu 1");
  CHECK_THAT(told[0].reason,
             Catch::EndsWith("; this program's own actors hold 2 of the cluster's 4 CPUs: "
                             "with({.cpus = 0}) gives an actor none"));
  world.wait(Options{}.notice_after);
  CHECK(world.seen<StillWaits>().empty());
}

TEST_CASE("whoever is at a command line is told what is held, and nothing about C++",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.state.new_process_id();
  world.step(JobStarted{.job = 1_job, .driver = driver, .at_command_line = true});
  world.ask_gang(1_gang, driver, 1, cpus(1), Strategy::Pack);
  world.ask_actor(1_actor, driver, cpus(1));
  world.ask_lease(driver, cpus(1));
  world.step(
      GangAsked{world.next_request(), 2_gang, 1_job, driver, 2, cpus(1), Strategy::Pack, true});
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 2);
  for (const auto& one : told) {
    INFO(one.reason);
    CHECK_THAT(
        one.reason,
        Catch::EndsWith("; this program's own actors hold 1 of the cluster's 2 CPUs, and its "
                        "gangs 1"));
    CHECK_THAT(one.reason, !Catch::Contains("kill()") && !Catch::Contains("handle"));
  }
}

TEST_CASE("of gangs and actors that hold half of the CPUs together both are named",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  world.ask_gang(1_gang, driver, 2, cpus(0.5));
  const bool with_actor = GENERATE(false, true);
  world.ask_actor(1_actor, driver, cpus(with_actor ? 1 : 0));
  world.ask_gang(2_gang, driver, 1, cpus(with_actor ? 0 : 1));
  for (int i = 0; i < 4; ++i) world.ask_lease(driver, cpus(1));
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK_THAT(
      told[0].reason,
      Catch::EndsWith(with_actor
                          ? "; this program's own actors hold 1 of the cluster's 4 CPUs, and its "
                            "gangs 1: with({.cpus = 0}) gives an actor none"
                          : "; this program's own gangs hold 2 of the cluster's 4 CPUs meanwhile"));
}

TEST_CASE("tasks in line are no news where their job's actors hold less than half, or another's do",
          "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 4}});
  const auto driver = world.start_job(1_job), other = world.start_job(2_job);
  world.ask_actor(1_actor, driver, cpus(1));
  world.ask_actor(2_actor, driver, cpus(0));
  world.ask_actor(3_actor, other, cpus(2), {}, 2_job);
  for (int i = 0; i < 3; ++i) world.ask_lease(driver, cpus(1));
  world.wait(Options{}.notice_after);
  CHECK(world.seen<StillWaits>().empty());
}

TEST_CASE("an actor that was given nothing is not said to keep it", "[scheduler][notice]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(0));
  world.ask_actor(2_actor, driver, cpus(1));
  world.ask_actor(3_actor, driver, cpus(1));
  world.wait(Options{}.notice_after);
  const auto told = world.seen<StillWaits>();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0].reason, Catch::Contains("; an actor of this job keeps what it was given"));
}

TEST_CASE("without patience for it the same gang would wait for ever", "[scheduler][fairness]") {
  Options options;
  options.patience = 24h;
  options.lease_term = 24h;
  World world{options};
  for (auto name : {"a", "b", "c"}) world.join(name, {{"cpu", 4}});
  const auto driver = world.start_job(1_job);
  Stream stream{world, driver, 1_job};
  stream.keep_asking(350ms);
  world.ask_gang(1_gang, driver, 12, cpus(1));  // of the same job: no other has had less
  for (int i = 0; i < 100; ++i) {
    world.wait(100ms);
    stream.keep_asking(Duration{250ms + (i % 3) * 100ms});
  }
  CHECK_FALSE(world.gangs.contains(1_gang));
}

TEST_CASE("while nodes are drained for it, others are told so and use what it does not need",
          "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 4}, {"disk", 1}});
  const auto driver = world.start_job(1_job);
  const auto other = world.start_job(2_job);
  const auto long_task = *world.lease_of(world.ask_lease(driver, cpus(2)));
  const auto gang = world.ask_gang(1_gang, other, 3, cpus(1), Strategy::Pack, 2_job);
  world.wait(3s);
  CHECK(world.recalled.contains(long_task.lease));
  CHECK(world.reason_of(gang) ==
        "room is kept free for it, as its turn is next: 'a' (node 1) has room for 2 of 3");
  CHECK(world.node(1_node).state == "drained for request 2");

  const auto small = world.ask_lease(driver, cpus(1));
  CHECK(world.reason_of(small) ==
        "what is free on 'a' (node 1) is kept for request 2, whose turn is next");
  CHECK(world.lease_of(world.ask_lease(driver, {{{"disk", 1}}, {}, false})));

  world.give_back(long_task.lease);
  CHECK(world.gangs.contains(1_gang));
  CHECK(world.lease_of(small));
}

TEST_CASE(
    "a reservation that does not fill is lifted for a while, so that what it waits for can go on",
    "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 2}});
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, cpus(1));
  const auto gang = world.ask_gang(2_gang, driver, 2, cpus(1));
  world.wait(3s);
  const auto small = world.ask_lease(driver, cpus(1));
  CHECK_FALSE(world.lease_of(small));
  world.wait(11s);
  REQUIRE(world.lease_of(small));
  world.give_back(world.lease_of(small)->lease);
  world.release_actor(1_actor);
  CHECK(world.gangs.contains(2_gang));
  CHECK(world.reason_of(gang) == "not pending");
}

TEST_CASE("requesters take turns: a lease past its term is recalled once somebody else waits",
          "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  const auto held = *world.lease_of(world.ask_lease(first, cpus(1)));
  world.wait(5s);
  CHECK(world.recalled.empty());

  const auto again = world.ask_lease(first, cpus(1));
  world.wait(100ms);
  CHECK(world.recalled.empty());  // it would only get back what it has

  const auto other = world.ask_lease(second, cpus(1), 2_job);
  world.wait(100ms);
  CHECK(world.recalled == std::set{held.lease});
  world.give_back(held.lease);
  REQUIRE(world.lease_of(other));  // its job has had nothing so far
  world.wait(10s);
  CHECK(world.recalled == std::set{world.lease_of(other)->lease});
  world.give_back(world.lease_of(other)->lease);
  CHECK(world.lease_of(again));
}

TEST_CASE("what fits passes what does not, in the order of arrival", "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 2}}, 1);
  const auto driver = world.start_job(1_job);
  world.ask_actor(1_actor, driver, gpus(1));
  const auto blocked = world.ask_lease(driver, gpus(1));
  const auto fits = world.ask_lease(driver, cpus(1));
  const auto next = world.ask_lease(driver, cpus(1));
  CHECK_FALSE(world.lease_of(blocked));
  CHECK(world.lease_of(fits));
  CHECK_FALSE(world.lease_of(next));
}

TEST_CASE(
    "of leases asked for together, the first is one that an idle process on the node can serve",
    "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  const auto held = *world.lease_of(world.ask_lease(first, cpus(1)));
  const auto cold = world.ask_lease(second, cpus(1), 2_job);
  world.now += Options{}.together;
  const auto warm = world.ask_lease(first, cpus(1));
  const auto late = world.ask_lease(first, cpus(1));

  world.give_back(held.lease);
  REQUIRE(world.lease_of(warm));
  CHECK(world.lease_of(warm)->process == held.process);
  CHECK(world.seen<StartProcess>().empty());
  world.give_back(world.lease_of(warm)->lease);
  REQUIRE(world.lease_of(late));
  world.give_back(world.lease_of(late)->lease);
  CHECK(world.lease_of(cold));
}

TEST_CASE("what came later than together with the first lease never passes it",
          "[scheduler][fairness]") {
  World world;
  world.join("a", {{"cpu", 1}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  const auto held = *world.lease_of(world.ask_lease(first, cpus(1)));
  const auto cold = world.ask_lease(second, cpus(1), 2_job);
  world.now += Options{}.together + 1ns;
  const auto later = world.ask_lease(first, cpus(1));
  world.give_back(held.lease);
  CHECK(world.lease_of(cold));
  CHECK_FALSE(world.lease_of(later));
}

TEST_CASE("what needs nothing goes to a node that the request before it has filled",
          "[scheduler][fairness]") {
  Options options;
  options.lease_processes_per_cpu = 2;
  World world{options};
  world.join("a", {{"cpu", 1}});
  const auto first = world.start_job(1_job);
  const auto second = world.start_job(2_job);
  REQUIRE(world.lease_of(world.ask_lease(first, {})));
  REQUIRE(world.lease_of(world.ask_lease(first, {})));
  const auto filling = world.ask_lease(second, cpus(1), 2_job);
  const auto needless = world.ask_lease(second, {}, 2_job);
  CHECK_FALSE(world.lease_of(filling));
  world.step(JobEnded{1_job, "done"});
  CHECK(world.lease_of(filling));
  CHECK(world.lease_of(needless));
}
