#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("actors of a driver spread over the workers of a cluster", "[cli][cluster]") {
  TestCluster cluster(2);
  const auto done = cluster.run_driver("use_all");
  INFO(done.output);
  REQUIRE(done.exit_code == 0);
  std::set<int> parents;
  std::istringstream lines(done.output);
  for (std::string word; lines >> word;) {
    if (word == "parent") {
      int pid = 0;
      lines >> pid;
      parents.insert(pid);
    }
  }
  CHECK(parents == std::set<int>{cluster.worker(0).agent(), cluster.worker(1).agent()});
  CHECK(cluster.all_is_free());
}

TEST_CASE("a gang spreads over two nodes", "[cli][cluster][gang]") {
  TestCluster cluster(2);
  const auto done = cluster.run_driver("gang");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(cluster.all_is_free());
}

TEST_CASE("a task, an actor and a rank are kept on the node whose number they ask for",
          "[cli][cluster][labels]") {
  TestCluster cluster(2);
  const auto done = cluster.run_driver("by_node");
  INFO(done.output);
  REQUIRE(done.exit_code == 0);
  for (const std::size_t worker : {0, 1}) {
    const auto number = std::to_string(worker + 1);
    CHECK(number_after(done.output, "task " + number) == cluster.worker(worker).agent());
    CHECK(number_after(done.output, "actor " + number) == cluster.worker(worker).agent());
    CHECK(number_after(done.output, "rank " + number) == static_cast<int>(worker) + 1);
  }
  CHECK_THAT(done.output, Catch::Contains("impossible: ") &&
                              Catch::Contains("no node has troupe.node=3; the closest is"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("SIGKILL of the driver frees its workers and what they started",
          "[cli][cluster][failure]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("hold");
  driver.wait_for_output("holding");
  const int actor = number_after(driver.output(), "actor");
  const int sleeper = number_after(driver.output(), "sleeper");
  const int daemon = number_after(driver.output(), "daemon");
  for (const auto pid : {actor, sleeper, daemon}) REQUIRE(is_alive(pid));
  driver.signal(SIGKILL);
  CHECK(eventually([&] { return !is_alive(actor) && !is_alive(sleeper) && !is_alive(daemon); }));
  CHECK(cluster.all_is_free());
}

TEST_CASE("the job of a killed driver ends although a copy of it that it forked lives on",
          "[cli][cluster][failure]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("forks");
  driver.wait_for_output("copy");
  const int copy = number_after(driver.output(), "copy");
  driver.signal(SIGKILL);
  CHECK(driver.wait());
  cluster.head().wait_for_output("job 1 ended");
  CHECK(is_alive(copy));
  REQUIRE(kill(copy, SIGKILL) == 0);
}

TEST_CASE("SIGKILL of a node's agent ends its worker processes and what they started",
          "[cli][cluster][failure]") {
  const bool of_its_guardian = GENERATE(false, true);
  TestCluster cluster(1);
  auto driver = cluster.driver("hold");
  driver.wait_for_output("holding");
  const int actor = number_after(driver.output(), "actor");
  const int sleeper = number_after(driver.output(), "sleeper");
  const int daemon = number_after(driver.output(), "daemon");
  const auto agent = cluster.worker(0).agent();
  REQUIRE(::kill(of_its_guardian ? cluster.worker(0).pid() : agent, SIGKILL) == 0);
  CHECK(eventually([&] {
    return !is_alive(actor) && !is_alive(sleeper) && !is_alive(daemon) && !is_alive(agent);
  }));
  driver.wait_for_output(": actor ");
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 3);
  CHECK(cluster.worker(0).wait());
  if (of_its_guardian) {  // the node lives a little longer
    cluster.worker(0).wait_for_output(
        "troupe: the process that was started as `troupe worker` (pid " +
        std::to_string(cluster.worker(0).pid()) + ") was killed\n");
  } else {
    CHECK_THAT(cluster.worker(0).output(),
               Catch::Contains("troupe worker (pid " + std::to_string(agent) +
                               ") was ended by signal 9 (Killed); what it ran on this machine has "
                               "been ended too\n"));
  }
}

TEST_CASE("a head whose first process is killed says so, and to its driver too",
          "[cli][cluster][failure]") {
  TemporaryFolder folder;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  Child head({TROUPE_PROGRAM, "head", "--port", "0"}, environment);
  head.wait_for_output("joined");
  std::string address;
  std::ifstream(folder.path() + "/troupe/address") >> address;
  Child driver({TROUPE_TEST_DRIVER, "hold"}, {environment.front(), "TROUPE_ADDRESS=" + address});
  driver.wait_for_output("holding");
  REQUIRE(kill(head.pid(), SIGKILL) == 0);
  const auto why = "the process that was started as `troupe head` (pid " +
                   std::to_string(head.pid()) + ") was killed";
  head.wait_for_output("the head's own node ended: " + why);
  driver.wait_for_output(why);
  const auto status = driver.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) != 0);
  CHECK(eventually([&] { return processes_with(environment.front()).empty(); }));
}

TEST_CASE("Ctrl-C of driver, worker and head leaves no process behind", "[cli][cluster][failure]") {
  for (const int number : {SIGINT, SIGTERM}) {
    TestCluster cluster(1);
    auto driver = cluster.driver("hold");
    driver.wait_for_output("holding");
    driver.signal(number);
    CHECK(driver.wait());
    CHECK(cluster.all_is_free());
    cluster.worker(0).signal(number);
    CHECK(cluster.worker(0).wait());
    cluster.head().signal(number);
    CHECK(cluster.head().wait());
    CHECK(eventually([&] { return processes_with("XDG_STATE_HOME=" + cluster.folder()).empty(); }));
  }
}

TEST_CASE("a private cluster is gone with its driver, however that ends",
          "[cli][cluster][failure]") {
  for (const int number : {SIGINT, SIGTERM, SIGKILL}) {
    TemporaryFolder folder;
    const std::string mark = "XDG_STATE_HOME=" + folder.path();
    Child driver({TROUPE_TEST_DRIVER, "hold"}, {mark, "TROUPE_ADDRESS="});
    driver.wait_for_output("holding");
    CHECK(processes_with(mark).size() >= 5);  // driver, guardian, cluster, zygote, actor
    const int daemon = number_after(driver.output(), "daemon");
    REQUIRE(is_alive(daemon));
    driver.signal(number);
    CHECK(driver.wait());
    CHECK(eventually([&] { return processes_with(mark).empty() && !is_alive(daemon); }));
  }
}

TEST_CASE("stop ends its own cluster and no other", "[cli][cluster]") {
  TestCluster one(1);
  TestCluster other(1);
  CHECK(run({TROUPE_PROGRAM, "stop"}, one.environment()).exit_code == 0);
  CHECK(one.head().wait());
  CHECK(one.worker(0).wait());
  CHECK(is_alive(other.head().pid()));
  CHECK(other.run_driver("task").exit_code == 0);
}

TEST_CASE(
    "a second head says whose place it takes for the commands here, and the end of the first one "
    "leaves it that",
    "[cli][cluster]") {
  TestCluster first(0);
  CHECK_THAT(first.head().output(), !Catch::Contains("until now"));
  const auto named = [&] {
    std::string address;
    std::ifstream(first.folder() + "/troupe/address") >> address;
    return address;
  };
  std::vector<std::string> environment{"XDG_STATE_HOME=" + first.folder(),
                                       "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  const auto state = first.folder() + "/second";
  Child second({TROUPE_PROGRAM, "head", "--port", "0", "--no-node", "--state-dir", state},
               environment);
  second.wait_for_output("until now");
  const auto address = named();
  CHECK(address != first.address());
  CHECK_THAT(second.output(), Catch::Contains("without --address meant the head at " +
                                              first.address() + " until now"));

  const auto refused = run({TROUPE_PROGRAM, "head", "--port", "0", "--state-dir",
                            first.folder() + "/third", "--spill-directory", "/proc/nowhere"},
                           environment);
  CHECK(refused.exit_code == 1);
  CHECK(named() == address);

  CHECK(run({TROUPE_PROGRAM, "stop", "--address", first.address()}, environment).exit_code == 0);
  CHECK(first.head().wait());
  CHECK(named() == address);
  CHECK(run({TROUPE_PROGRAM, "stop"}, environment).exit_code == 0);
  CHECK(second.wait());
  CHECK(named().empty());
}

TEST_CASE("the end of a second head gives its place back to the first one, if that lives",
          "[cli][cluster]") {
  TestCluster first(0);
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + first.folder(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  const auto named = [&] {
    std::string address;
    std::ifstream(first.folder() + "/troupe/address") >> address;
    return address;
  };
  const auto start = [&](const std::string& state) {
    Child head(
        {TROUPE_PROGRAM, "head", "--port", "0", "--no-node", "--state-dir", first.folder() + state},
        environment);
    head.wait_for_output("token file:");
    return head;
  };
  auto second = start("/second");
  second.wait_for_output("means the other one (pid ");
  CHECK_THAT(second.output(),
             Catch::Contains("another head runs here") &&
                 Catch::Contains("--address " + first.address() + " means the other one (pid " +
                                 std::to_string(first.head().pid()) + ")"));
  CHECK(named() != first.address());
  std::ifstream for_scripts(first.folder() + "/troupe/address");
  CHECK(std::string(std::istreambuf_iterator<char>(for_scripts), {}) == named() + "\n");
  second.signal(SIGTERM);
  CHECK(second.wait());
  CHECK(named() == first.address());
  CHECK(run({TROUPE_PROGRAM, "status"}, environment).exit_code == 0);

  auto killed = start("/killed");
  const auto stale = named();
  killed.signal(SIGKILL);
  CHECK(killed.wait());
  auto third = start("/third");
  CHECK_THAT(third.output(), Catch::Contains("named the head at " + stale + ", which has ended") &&
                                 !Catch::Contains("another head runs here"));
  third.signal(SIGTERM);
  CHECK(third.wait());
  CHECK(named().empty());
}

TEST_CASE("the token is made on the first start with mode 0600, and never printed",
          "[cli][cluster][security]") {
  TestCluster cluster(0);
  struct stat status {};
  REQUIRE(stat(cluster.token_file().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  std::ifstream in(cluster.token_file());
  std::string token;
  in >> token;
  CHECK(token.size() == 64);
  CHECK(cluster.head().output().find(token) == std::string::npos);
}

TEST_CASE(
    "a driver opens as many files as its hard limit allows, its worker processes the soft one",
    "[cli][cluster]") {
  const auto driver = run(
      {"/bin/sh", "-c", "ulimit -Sn 100; ulimit -Hn 5000; exec \"$0\" many", TROUPE_TEST_DRIVER},
      {"TROUPE_ADDRESS="});
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
  CHECK(number_after(driver.output, "own files") == 5000);
  CHECK_THAT(driver.output, Catch::Contains("\nfiles 100\n") || Catch::StartsWith("files 100\n"));
}

TEST_CASE(
    "a program with a thread before troupe::init has a private cluster, and is told what it costs",
    "[cli][cluster]") {
#if defined(__SANITIZE_THREAD__)
  std::cout << "skipped: ThreadSanitizer makes no threads in the fork of a program with threads\n";
  return;
#endif
  const std::vector<std::string> alone{"TROUPE_ADDRESS=", "TROUPE_TOKEN="};
  auto with_thread = alone;
  with_thread.push_back("DRIVER_THREAD=1");
  for (const std::string what : {"task", "stored"}) {
    INFO(what);
    const auto driver = run({TROUPE_TEST_DRIVER, what}, with_thread);
    INFO(driver.output);
    CHECK(driver.exit_code == 0);
    CHECK_THAT(driver.output,
               Catch::StartsWith("troupe: the program has 2 threads (") &&
                   Catch::Contains("worker processes cannot be forked from this one") &&
                   Catch::Contains("Call troupe::init first in main().\n"));
    // Once: the program that is started anew, and its worker processes, do not repeat it.
    CHECK(driver.output.find("troupe: ") == driver.output.rfind("troupe: "));
    CHECK(number_after(driver.output, what == "task" ? "\ntask" : "\nbytes") > 0);
  }
  CHECK_THAT(run({TROUPE_TEST_DRIVER, "task"}, alone).output, Catch::StartsWith("task "));
}

TEST_CASE("a program that is executed anew and ends before troupe::init is told so at once",
          "[cli][cluster]") {
  const auto driver =
      run({TROUPE_TEST_DRIVER, "leaves"}, {"TROUPE_ADDRESS=", "TROUPE_TOKEN=", "DRIVER_THREAD=1"});
  INFO(driver.output);
  CHECK(driver.exit_code == 1);
  CHECK_THAT(
      driver.output,
      Catch::Contains("driver: Refused: the private cluster ended with exit code 0 before it "
                      "had started; it is this program, executed anew") &&
          Catch::Contains("call troupe::init there too"));
}

TEST_CASE(
    "a node has as many worker processes as its hard limit of open files allows, and they the soft "
    "one",
    "[cli][cluster]") {
  // A thread at troupe::init: worker processes, which have the node's environment, are executed and
  // not forked.
  const std::string thread = GENERATE("NO_THREAD=1", "DRIVER_THREAD=1");
  CAPTURE(thread);
  TestCluster cluster(0);
  auto environment = cluster.environment();
  environment.push_back(thread);
  Child worker({"/bin/sh", "-c", "ulimit -Sn 100; exec \"$0\" worker --head \"$1\"", TROUPE_PROGRAM,
                cluster.address()},
               environment);
  worker.wait_for_output("of the cluster at");
  const auto driver = cluster.run_driver("many");
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
  CHECK_THAT(driver.output, Catch::Contains("files 100"));
  worker.signal(SIGTERM);
  CHECK(worker.wait());
}

TEST_CASE("the log folders of ended nodes go but for the last ones, those of living nodes stay",
          "[cli][cluster]") {
  TestCluster cluster(1);
  const auto logs = std::filesystem::path(cluster.folder()) / "troupe" / "logs";
  const auto folder_of = [&](const Child& node) {
    return logs / ("node-" + std::to_string(node.agent()));
  };
  std::vector<std::filesystem::path> ended;
  for (int i = 0; i < 3; ++i) {
    cluster.add_worker({"--keep-logs", "1"});
    auto& worker = cluster.worker(cluster.workers() - 1);
    ended.push_back(folder_of(worker));
    CHECK(std::filesystem::exists(ended.back()));
    REQUIRE(::kill(worker.agent(), SIGKILL) == 0);
    REQUIRE(worker.wait());
  }
  cluster.add_worker({"--keep-logs", "1"});
  CHECK_FALSE(std::filesystem::exists(ended[0]));
  CHECK_FALSE(std::filesystem::exists(ended[1]));
  CHECK(std::filesystem::exists(ended[2]));
  CHECK(std::filesystem::exists(folder_of(cluster.worker(0))));
  CHECK(std::filesystem::exists(folder_of(cluster.worker(cluster.workers() - 1))));
}

TEST_CASE("status names what waits and why, and so does its driver after a while",
          "[cli][cluster]") {
  TestCluster cluster(1, 1);
  auto holder = cluster.driver("hold");
  holder.wait_for_output("holding");
  auto waiting = cluster.driver("task");
  CHECK(eventually([&] {
    const auto status = nlohmann::json::parse(cluster.status());
    return status["pending"].size() == 1 &&
           !status["pending"][0]["reason"].get<std::string>().empty();
  }));
  CHECK_THAT(run({TROUPE_PROGRAM, "status"}, cluster.environment()).output,
             Catch::Contains("waiting ") &&
                 Catch::Contains(" s: lease of cpu 1 for job 2 (test_driver): ") &&
                 Catch::Contains(" cpu 0, memory ") && Catch::Contains(" / cpu 1, memory "));
  waiting.wait_for_output("lease of cpu 1 has waited for ");
}

TEST_CASE("a driver whose own actors hold the CPUs that its task waits for is told so",
          "[cli][cluster]") {
  TestCluster cluster(1, 1);
  auto driver = cluster.driver("holds_itself");
  driver.wait_for_output("this program's own actors hold 1 of the cluster's 1");
  driver.wait_for_output("with({.cpus = 0}) gives an actor none");
}

TEST_CASE("a second node of a machine is told that it offers the cores again", "[cli][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "1", "--name", "part"});
  cluster.add_worker({"--cpus", "1", "--name", "rest"});
  cluster.add_worker({"--name", "all"});
  cluster.worker(2).wait_for_output("node 1 (part) is on the same machine");
  for (const int other : {0, 1})
    CHECK_THAT(cluster.worker(other).output(), !Catch::Contains("on the same machine"));
  CHECK_THAT(cluster.worker(2).output(), Catch::Contains("start this node with its part of them"));
}

TEST_CASE("a node that was given its part is not told to be given it", "[cli][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--name", "all"});
  cluster.add_worker({"--cpus", "1", "--name", "part"});
  cluster.worker(1).wait_for_output("start node 1 with its part of them");
}

TEST_CASE("a head whose port another head has says how to end that one", "[cli][cluster]") {
  TestCluster cluster(0);
  const auto port = cluster.address().substr(cluster.address().rfind(':') + 1);
  const auto second =
      run({TROUPE_PROGRAM, "head", "--port", port, "--no-node", "--state-dir",
           cluster.folder() + "/second"},
          {"XDG_STATE_HOME=" + cluster.folder(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  CHECK(second.exit_code == 1);
  CHECK_THAT(second.output, Catch::Contains("port " + port + " is in use") &&
                                Catch::Contains("`troupe stop --head " + cluster.address() + "`"));
}

TEST_CASE("status lists the gangs that run", "[cli][cluster]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("hold_gang");
  driver.wait_for_output("placed");
  const auto shown = run({TROUPE_PROGRAM, "status"}, cluster.environment());
  CHECK_THAT(shown.output, Catch::Contains(": 2 ranks of job 1, placed\n"));
  driver.signal(SIGKILL);
}
