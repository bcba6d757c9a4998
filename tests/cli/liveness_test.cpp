// What is noticed of a host that is cut off, and of processes that stand still: no connection says
// anything then.
#include <csignal>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "guard.hpp"
#include "stopped.hpp"
#include "support/hosts.hpp"

using namespace troupe::test;

namespace {

Child liveness_driver(const TestCluster& cluster, const std::string& what) {
  return Child({TROUPE_TEST_LIVENESS_DRIVER, what, "--address", cluster.address()},
               cluster.environment());
}

}  // namespace

TEST_CASE(
    "of a host that is cut off, head, driver there and a third process learn, on idle connections",
    "[cli][network][liveness]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  head.wait_for_output("node 1 joined");
  Child worker(scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus",
                                      "2", "--head-silence", "20"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");
  Child near(
      scene.hosts.on_first({TROUPE_TEST_LIVENESS_DRIVER, "third", "--address", scene.address()}),
      scene.near_environment);
  near.wait_for_output("waiting");
  Child far(scene.hosts.on_second({TROUPE_TEST_DRIVER, "hold_first", "--address", scene.address()}),
            scene.far_environment);
  far.wait_for_output("holding");
  const int actor = number_after(far.output(), "actor");
  REQUIRE(is_alive(actor));

  REQUIRE(scene.hosts.change_second("link set " + scene.hosts.second_device() + " down"));
  near.wait_for_output("called: {anonymous}::Far::sleeps got no answer: actor");
  near.wait_for_output("got: the value went with its owner: process");
  CHECK_THAT(near.output(), Catch::Contains("was lost with node 2"));
  far.wait_for_output("failed: ");
  CHECK_THAT(far.output(), Catch::Contains("the head at " + scene.address()));
  CHECK(eventually([&] { return !is_alive(actor); }));
  CHECK(near.wait());
  const auto free = [&] {
    const auto status = nlohmann::json::parse(printed_by(
        scene.hosts.on_first({TROUPE_PROGRAM, "status", "--json"}), scene.near_environment));
    return status["nodes"].size() == 1 && status["nodes"][0]["free"] == status["nodes"][0]["total"];
  };
  CHECK(eventually(free));
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
}

TEST_CASE("who waits for a process on a node that stands still is told once the node is lost",
          "[cli][liveness]") {
  TestCluster cluster(2);
  auto driver = liveness_driver(cluster, "third");
  driver.wait_for_output("waiting");
  const Stopped node(cluster.worker(1).agent());
  const Stopped far(number_after(driver.output(), "far"));
  driver.wait_for_output("got: the value went with its owner: process", kGuard);
  CHECK_THAT(driver.output(), Catch::Contains("Far::sleeps got no answer: actor") &&
                                  Catch::Contains("was lost with node 2 (w2 at 127.0.0.1)"));
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("what a node that stands still does not tell is said to be missing, with exit code 1",
          "[cli][liveness][output]") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"logs", "job", "1"}, {"timeline", "-"}}) {
    TestCluster cluster(2);
    auto driver = liveness_driver(cluster, "third");
    driver.wait_for_output("waiting");
    const Stopped node(cluster.worker(1).agent());
    auto command = words;
    command.insert(command.begin(), TROUPE_PROGRAM);
    const auto done = run(command, cluster.environment(), kGuard, Streams::Apart);
    INFO(done.errors);
    CHECK(done.exit_code == 1);
    CHECK_THAT(done.errors,
               Catch::Contains("node w2 has not answered") && !Catch::Contains("node w1"));
  }
}

TEST_CASE("who writes to the store of a node that stands still goes on once that is lost",
          "[cli][liveness][store]") {
  TestCluster cluster(1);
  auto driver = liveness_driver(cluster, "stores");
  driver.wait_for_output("attached");
  const Stopped node(cluster.worker(0).agent());
  const Stopped far(number_after(driver.output(), "far"));
  driver.signal(SIGUSR1);
  driver.wait_for_output("failed: the object store of this machine was lost with node 1");
  driver.wait_for_output("put 1000000");
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("who calls an actor that is ended before it had a place is told", "[cli][liveness]") {
  TestCluster cluster(1);
  auto driver = liveness_driver(cluster, "unplaced");
  driver.wait_for_output("called: there is no actor", kGuard);
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("a driver that stands still, as in a debugger, keeps its job", "[cli][liveness]") {
  TestCluster cluster(1);
  auto driver = liveness_driver(cluster, "stops");
  driver.wait_for_output("works 1");
  cluster.head().wait_for_output("is stopped, as in a debugger", kGuard);
  driver.signal(SIGCONT);
  driver.wait_for_output("still works 1");
  cluster.head().wait_for_output("its driver goes on");
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("a head that stands still costs nothing, and its nodes and drivers say that it does",
          "[cli][liveness]") {
  TestCluster cluster(1);
  auto driver = liveness_driver(cluster, "outlasts");
  driver.wait_for_output("works");
  const auto silent = "the head at " + cluster.address() + " has said nothing for 10 s";
  {
    const Stopped head(cluster.head().pid());
    driver.wait_for_output(silent);
    cluster.worker(0).wait_for_output(silent);
  }
  driver.wait_for_output("the head at " + cluster.address() + " goes on");
  cluster.worker(0).wait_for_output("the head at " + cluster.address() + " goes on");
  driver.signal(SIGUSR1);
  driver.wait_for_output("the same process");
  driver.wait_for_output("still works 1 1");
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("a node ends with its processes where the head stands still for longer than it may",
          "[cli][liveness]") {
  TestCluster cluster(0);
  Child worker({TROUPE_PROGRAM, "worker", "--head", cluster.address(), "--head-silence", "2"},
               cluster.environment());
  worker.wait_for_output("node 1 of the cluster");
  const Stopped head(cluster.head().pid());
  worker.wait_for_output("the head at " + cluster.address() + " is silent for more than 2 s");
  const auto status = worker.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
}

TEST_CASE("a value that a task has put is there as long as somebody has its ref",
          "[cli][liveness]") {
  TestCluster cluster(1);
  const auto done = run({TROUPE_TEST_LIVENESS_DRIVER, "kept", "--address", cluster.address()},
                        cluster.environment());
  INFO(done.output);
  CHECK_THAT(done.output, Catch::Contains("value 42"));
}
