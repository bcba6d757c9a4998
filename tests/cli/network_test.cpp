#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "support/hosts.hpp"

using namespace troupe::test;

TEST_CASE("a program runs on another host, which joined over the network", "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  CHECK_THAT(head.output(), Catch::Contains("not encrypted"));
  Child worker(scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus",
                                      "2", "--name", "far"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");

  const auto gang = scene.drive({TROUPE_TEST_DRIVER, "gang"});
  INFO(gang.output);
  CHECK(gang.exit_code == 0);
  const auto spread = scene.drive({TROUPE_TEST_DRIVER, "use_all"});
  INFO(spread.output);
  CHECK(spread.exit_code == 0);
  CHECK_THAT(spread.output, Catch::Contains("parent " + std::to_string(worker.agent())));

  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
  CHECK(eventually([&] { return processes_with("XDG_STATE_HOME=" + scene.far.path()).empty(); }));
}

TEST_CASE("what worker processes of another host print appears at the driver", "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  Child worker(scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus",
                                      "2", "--name", "far"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");
  const auto done = scene.drive({TROUPE_TEST_OUTPUT_DRIVER, "speaks"});
  INFO(done.output);
  CHECK_THAT(done.output, Catch::Contains("node=far) hello from a task on node 2\n"));
  const auto logs =
      run(scene.hosts.on_first({TROUPE_PROGRAM, "logs", "job", "1"}), scene.near_environment);
  INFO(logs.output);
  CHECK_THAT(logs.output, Catch::Contains("node=far) hello from a task on node 2\n"));
}

TEST_CASE("what ends a worker process before it is ready is in the failure that its caller sees",
          "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  REQUIRE(scene.hosts.change_second("addr add 10.77.0.9/32 dev lo"));
  Child worker(scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(),
                                      "--node-host", "10.77.0.9"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");
  REQUIRE(scene.hosts.change_second("addr del 10.77.0.9/32 dev lo"));
  const auto task = scene.drive({TROUPE_TEST_DRIVER, "task"});
  INFO(task.output);
  CHECK(task.exit_code == 1);
  CHECK_THAT(task.output,
             Catch::Contains("could not start: 10.77.0.9 is no address of this machine") &&
                 Catch::Contains("its log is " + scene.far.path()));
  worker.wait_for_output("could not start: 10.77.0.9 is no address of this machine");
}

TEST_CASE(
    "a program that the other machine cannot run fails with one message, which names what it lacks",
    "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  // To this node the folder of the library is empty.
  const std::string hide =
      "mount -t tmpfs tmpfs " + TROUPE_TEST_LIBRARY_FOLDER + " && exec \"$0\" \"$@\"";
  Child worker(
      scene.hosts.on_second({"unshare", "--mount", "sh", "-c", hide, TROUPE_PROGRAM, "worker",
                             "--head", scene.address(), "--cpus", "1", "--name", "far"}),
      scene.far_environment);
  worker.wait_for_output("of the cluster at");
  const std::string lacks = "this node lacks shared libraries that it needs: libtest_only_here.so";
  {
    const auto task = scene.drive({TROUPE_TEST_LIBRARY_DRIVER});
    INFO(task.output);
    CHECK(task.exit_code == 1);
    const auto at = task.output.find(lacks);
    REQUIRE(at != std::string::npos);
    CHECK(task.output.find(lacks, at + 1) == std::string::npos);
    CHECK_THAT(task.output,
               Catch::Contains("'far' (node 1)") && Catch::Contains(TROUPE_TEST_LIBRARY_DRIVER));
  }
  worker.wait_for_output(lacks);
  worker.signal(SIGTERM);
  CHECK(worker.wait());
  Child other(scene.hosts.on_second(
                  {"unshare", "--mount", TROUPE_PROGRAM, "worker", "--head", scene.address()}),
              scene.far_environment);
  other.wait_for_output("of the cluster at");
  const auto task = scene.drive({TROUPE_TEST_LIBRARY_DRIVER});
  CHECK_THAT(task.output, Catch::Contains("answer 42"));
}

TEST_CASE("a program that the other machine lacks is sent there by its digest, once",
          "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  // A mount namespace of its own: to the node, the driver's paths are another machine's.
  Child worker(scene.hosts.on_second({"unshare", "--mount", TROUPE_PROGRAM, "worker", "--head",
                                      scene.address(), "--cpus", "1"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");
  for (int time = 0; time < 2; ++time) {
    const auto task = scene.drive({TROUPE_TEST_DRIVER, "task"});
    INFO(task.output);
    CHECK(task.exit_code == 0);
  }
  std::size_t programs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(scene.far.path() + "/troupe/programs")) {
    programs += entry.path().filename().string().size() == 64 ? 1 : 0;
  }
  CHECK(programs == 1);
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
}
