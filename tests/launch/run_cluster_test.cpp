#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

/// `troupe run` on a head and its workers.
namespace {

Finished run_on(const TestCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--address", cluster.address()});
  return run(std::move(arguments), cluster.environment());
}

Child start_on(const TestCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--address", cluster.address()});
  return Child(std::move(arguments), cluster.environment());
}

}  // namespace

TEST_CASE("ranks of a cluster are spread as they fit, or so many on each node",
          "[launch][cluster]") {
  const TestCluster cluster(2);
  const auto where =
      "echo rank $RANK node $GROUP_RANK of $GROUP_WORLD_SIZE local $LOCAL_RANK of "
      "$LOCAL_WORLD_SIZE";
  const auto packed = run_on(cluster, {"-n", "4", "--", "sh", "-c", where});
  CHECK(packed.exit_code == 0);
  CHECK_THAT(packed.output, Catch::Contains("rank 3 node 1 of 2 local 1 of 2"));
  const auto each = run_on(cluster, {"--per-node", "1", "--", "sh", "-c", where});
  CHECK_THAT(each.output, Catch::Contains("rank 1 node 1 of 2 local 0 of 1"));
  const auto two_each =
      run_on(cluster, {"-n", "4", "--per-node", "2", "--cpus", "0.5", "--", "sh", "-c", where});
  CHECK_THAT(two_each.output, Catch::Contains("rank 2 node 1 of 2 local 0 of 2"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("more ranks than the cluster has room for are refused with what there is",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto done = run_on(cluster, {"-n", "3", "--", "true"});
  CHECK(done.exit_code == 125);
  CHECK_THAT(done.output, Catch::Contains("all nodes together hold 2 of the 3 ranks of ") &&
                              Catch::Contains("cpu") &&
                              Catch::Contains(", even when idle: give -n 2, or --cpus 0.5 so that "
                                              "3 ranks have room, or add a machine with `troupe "
                                              "worker`\n"));
}

TEST_CASE("an elastic gang is as large as fits", "[launch][cluster]") {
  const TestCluster cluster(2);
  const auto done = run_on(cluster, {"-n", "2:9", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE"});
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("[3] 3 of 4\n"));
}

TEST_CASE("an elastic gang goes on with fewer ranks where a node is lost", "[launch][cluster]") {
  TestCluster cluster(2);
  auto child = start_on(cluster, {"-n", "2:4", "--max-restarts", "3", "--", "sh", "-c",
                                  "echo attempt $TORCHELASTIC_RESTART_COUNT size $WORLD_SIZE; "
                                  "[ $WORLD_SIZE = 2 ] || exec sleep 600"});
  child.wait_for_output("[3] attempt 0 size 4");
  cluster.worker(1).signal(SIGKILL);
  child.wait_for_output("[1] attempt 1 size 2");
  const auto status = child.wait();
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(child.output(), Catch::Contains("was lost"));
}

TEST_CASE("a node that is lost is told by its name and address", "[launch][cluster]") {
  TestCluster cluster(0);
  for (const auto* name : {"left", "right"}) cluster.add_worker({"--cpus", "1", "--name", name});
  const auto summary = cluster.folder() + "/summary.json";
  auto child = start_on(
      cluster, {"-n", "2", "--summary", summary, "--", "sh", "-c", "echo ready; exec sleep 600"});
  for (const auto* rank : {"[0] ready", "[1] ready"}) child.wait_for_output(rank);
  cluster.worker(1).signal(SIGKILL);
  const auto status = child.wait();
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
  CHECK_THAT(child.output(), Catch::Contains(" on node right (127.0.0.1) was lost"));
  const auto failure = nlohmann::json::parse(std::ifstream(summary)).at("failure");
  CHECK(failure.at("node") == "right");
  CHECK(failure.at("address") == "127.0.0.1");
}

TEST_CASE("a run says why its cluster has ended, and which rank was lost", "[launch][cluster]") {
  TestCluster cluster(1);
  const auto summary = cluster.folder() + "/summary.json";
  auto child = start_on(
      cluster, {"-n", "2", "--summary", summary, "--", "sh", "-c", "echo ready; exec sleep 600"});
  for (const auto* rank : {"[0] ready", "[1] ready"}) child.wait_for_output(rank);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  const auto status = child.wait();
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 125);
  CHECK_THAT(child.output(), Catch::Contains("was lost: the cluster was stopped: asked by"));
  std::ifstream in(summary);
  const auto told = nlohmann::json::parse(in);
  CHECK(told.at("status") == 125);
  CHECK_THAT(told.at("failure").at("why").get<std::string>(),
             Catch::Contains("the cluster was stopped"));
  CHECK(cluster.head().wait());
}

TEST_CASE("a gang that waits for its place ends at once by SIGINT and by its time limit",
          "[launch][cluster]") {
  const TestCluster cluster(1, 1);
  auto holder = start_on(cluster, {"--", "sh", "-c", "echo here; exec sleep 600"});
  holder.wait_for_output("[0] here");
  const auto start = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--grace", "600", "--", "touch", cluster.folder() + "/started"});
    return start_on(cluster, std::move(options));
  };
  const auto check_ends = [&](Child& waiting, int exit_code) {
    const auto status = waiting.wait();
    INFO(waiting.output());
    REQUIRE(status);
    CHECK(WIFEXITED(*status));
    CHECK(WEXITSTATUS(*status) == exit_code);
    CHECK_THAT(waiting.output(), Catch::Contains("before one was started"));
  };
  SECTION("SIGINT") {
    auto waiting = start({});
    waiting.wait_for_output("has waited for");
    waiting.signal(SIGINT);
    check_ends(waiting, 128 + SIGINT);
  }
  SECTION("its time limit") {
    auto waiting = start({"--timeout", "2"});
    check_ends(waiting, 124);
  }
  CHECK(is_alive(holder.pid()));
  holder.signal(SIGTERM);
  CHECK(holder.wait());
  CHECK(cluster.all_is_free());
  CHECK_FALSE(std::filesystem::exists(cluster.folder() + "/started"));
}

TEST_CASE("a program that leaves its process group is gone with its gang", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto done = run_on(
      cluster, {"-n", "2", "--", "sh", "-c", "setsid sleep 300 & echo left $!; sleep 0.3; exit 1"});
  CHECK(done.exit_code == 1);
  const auto pid = number_after(done.output, "left");
  CHECK(eventually([pid] { return !is_alive(pid); }));
  CHECK(cluster.all_is_free());
}

TEST_CASE("a command that is killed leaves nothing running", "[launch][cluster]") {
  const TestCluster cluster(1);
  auto child = start_on(cluster, {"-n", "2", "--", "sh", "-c",
                                  "trap '' TERM; echo pid $$; while :; do sleep 0.1; done"});
  child.wait_for_output("[0] pid ");
  child.wait_for_output("[1] pid ");
  const auto pid = number_after(child.output(), "[1] pid");
  child.signal(SIGKILL);
  child.wait();
  CHECK(eventually([pid] { return !is_alive(pid); }));
  CHECK(cluster.all_is_free());
}

/// How long that takes is measured by `./run bench launch`.
TEST_CASE("a command that does nothing waits neither for its grace nor for its limit",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  auto child = start_on(cluster, {"-n", "2", "--grace", "600", "--timeout", "900", "--", "true"});
  const auto status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
}

TEST_CASE("a folder that is sent is the working directory of all ranks, and gone with the run",
          "[launch][cluster]") {
  const TestCluster cluster(2);
  const auto sent = cluster.folder() + "/sent", where = cluster.folder() + "/where";
  std::filesystem::create_directories(sent + "/data");
  std::ofstream(sent + "/data/x") << "here\n";
  std::ofstream(sent + "/large") << std::string(10'000'000, '#');  // in several pieces
  const auto done = run_on(
      cluster, {"-n", "4", "--workdir", sent, "--", "sh", "-c",
                "cat data/x; wc -c < large; touch left-$RANK; [ $RANK != 0 ] || pwd > " + where});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  for (const auto* line :
       {"[0] here\n", "[1] here\n", "[2] here\n", "[3] here\n", "[3] 10000000\n"})
    CHECK_THAT(done.output, Catch::Contains(line));
  CHECK_FALSE(std::filesystem::exists(sent + "/left-0"));
  std::string path;
  std::getline(std::ifstream(where) >> std::ws, path);
  CHECK(path != sent);
  CHECK(eventually([&] { return !std::filesystem::exists(path); }));
}

TEST_CASE("a folder that a node has is not sent there again", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto sent = cluster.folder() + "/sent";
  std::filesystem::create_directories(sent);
  /// How many pieces of folders the node has taken in all, once a run has sent this content.
  const auto taken_after = [&](const std::string& text) {
    std::ofstream(sent + "/x") << text << "\n";
    const auto done = run_on(cluster, {"-n", "2", "--workdir", sent, "--", "cat", "x"});
    CHECK(done.exit_code == 0);
    CHECK_THAT(done.output, Catch::Contains("[1] " + text + "\n"));
    const auto trace =
        nlohmann::json::parse(printed_by({TROUPE_PROGRAM, "timeline", "-"}, cluster.environment()));
    return std::ranges::count_if(trace.at("traceEvents"), [](const nlohmann::json& event) {
      return event.at("name") == "troupe::launch::RankHost::receive";
    });
  };
  CHECK(taken_after("one") == 1);
  CHECK(taken_after("one") == 1);
  CHECK(taken_after("two") == 2);
}
