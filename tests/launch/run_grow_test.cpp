#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

/// That a gang of `troupe run -n 2:4` grows where room comes, and only then.
namespace run_grow_test {

Child start_on(const TestCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--address", cluster.address()});
  return Child(std::move(arguments), cluster.environment());
}

/// For a shell, with a folder: says which attempt it is. One that has not grown runs on, and ticks
/// once there is a file "joined".
constexpr const char* kTicks =
    "echo attempt $TORCHELASTIC_RESTART_COUNT size $WORLD_SIZE; tick=0; "
    "[ $WORLD_SIZE = 4 ] || while :; do sleep 0.1; [ ! -e $0/joined ] || "
    "{ tick=$((tick + 1)); echo tick $tick; }; done";

/// The run goes on for 4 s since a worker has joined, with no word of `troupe run` itself.
void check_stays(Child& run, const TestCluster& cluster) {
  std::ofstream(cluster.folder() + "/joined").put('x');
  run.wait_for_output("[0] tick 40\n");
  CHECK_THAT(run.output(), !Catch::Contains("troupe run:"));
}

void check_ends_well(Child& run) {
  const auto status = run.wait();
  INFO(run.output());
  REQUIRE(status);
  CHECK(*status == 0);
}

nlohmann::json read_summary(const std::string& file) {
  return nlohmann::json::parse(std::ifstream(file));
}

}  // namespace run_grow_test

TEST_CASE("an elastic gang grows where a worker joins, which uses up no restart",
          "[launch][cluster]") {
  TestCluster cluster(1, 2);
  const auto summary = cluster.folder() + "/summary.json", logs = cluster.folder() + "/logs";
  // The one restart is left for what fails then.
  auto run = run_grow_test::start_on(
      cluster, {"-n", "2:4", "--max-restarts", "1", "--grow-after", "1", "--grace", "30",
                "--summary", summary, "--log-dir", logs, "--tee", "--", "sh", "-c",
                "trap 'echo told to end; exit 1' TERM; attempt=$TORCHELASTIC_RESTART_COUNT; "
                "echo attempt $attempt of $TORCHELASTIC_MAX_RESTARTS size $WORLD_SIZE; "
                "[ $attempt = 0 ] || exit 0; [ $WORLD_SIZE$RANK != 43 ] || exit 1; "
                "while :; do sleep 0.05; done"});
  for (const auto* rank : {"[0]", "[1]"})
    run.wait_for_output(std::string(rank) + " attempt 0 of 1 size 2\n");
  cluster.add_worker({"--cpus", "2"});
  run.wait_for_output("[3] attempt 0 of 1 size 4\n");
  run.wait_for_output("the gang is formed anew (restart 1 of 1)");
  run.wait_for_output("[3] attempt 1 of 1 size 4\n");
  run_grow_test::check_ends_well(run);
  CHECK_THAT(run.output(),
             Catch::Contains("troupe run: there has been room for 4 ranks for 1 s, and 2 run: they "
                             "are ended for a larger gang\n") &&
                 Catch::Contains("[0] told to end\n") &&
                 Catch::Contains("troupe run: the gang is formed anew, to have more ranks (0 of 1 "
                                 "restarts are used)\n"));
  const auto told = run_grow_test::read_summary(summary);
  CHECK(told.at("growths") == 1);
  CHECK(told.at("restarts") == 1);
  CHECK(told.at("ranks") == 4);
  for (const auto* file : {"/rank-1.log", "/growth-1/rank-3.log", "/restart-1/rank-3.log"})
    CHECK(std::ifstream(logs + file).good());
  CHECK(cluster.all_is_free());
}

TEST_CASE("a gang that is never to grow stays as it is where a worker joins", "[launch][cluster]") {
  TestCluster cluster(1, 2);
  auto run =
      run_grow_test::start_on(cluster, {"-n", "2:4", "--max-restarts", "1", "--grow-after", "never",
                                        "--", "sh", "-c", run_grow_test::kTicks, cluster.folder()});
  run.wait_for_output("[1] attempt 0 size 2\n");
  cluster.add_worker({"--cpus", "2"});
  run_grow_test::check_stays(run, cluster);
  run.signal(SIGTERM);
  CHECK(run.wait());
}

TEST_CASE("a gang that cannot start where it grows goes on as it was, which uses up no restart",
          "[launch][cluster]") {
  TestCluster cluster(1, 2);
  const auto summary = cluster.folder() + "/summary.json", logs = cluster.folder() + "/logs";
  auto run = run_grow_test::start_on(
      cluster, {"-n", "2:3", "--max-restarts", "1", "--grow-after", "1", "--no-env", "--summary",
                summary, "--log-dir", logs, "--tee", "--", "sh", "-c",
                "trap 'echo >> $0/told; exit 1' TERM; echo size $WORLD_SIZE; "
                "[ -e $0/told ] || while :; do sleep 0.05; done",
                cluster.folder()});
  for (const auto* rank : {"[0]", "[1]"}) run.wait_for_output(std::string(rank) + " size 2\n");
  cluster.add_worker({"--cpus", "1"}, {"PATH=/lacks/the/program"});
  run.wait_for_output(
      "the larger gang did not start, and one of at most 2 ranks is formed (0 of 1 "
      "restarts are used)\n");
  run_grow_test::check_ends_well(run);
  CHECK_THAT(run.output(), Catch::Contains("could not be started: there is no program"));
  const auto told = run_grow_test::read_summary(summary);
  CHECK(told.at("growths") == 1);
  CHECK(told.at("restarts") == 0);
  CHECK(told.at("ranks") == 2);
  CHECK(std::ifstream(logs + "/return-1/rank-1.log").good());
}

TEST_CASE("a gang does not grow into room that another request waits for", "[launch][cluster]") {
  TestCluster cluster(0);
  // What the other request waits for is on a node of its own, which the head may keep for it.
  cluster.add_worker({"--cpus", "1", "--gpus", "1"});
  auto holder = run_grow_test::start_on(
      cluster, {"--gpus", "1", "--", "sh", "-c", "echo here; exec sleep 600"});
  holder.wait_for_output("[0] here");
  cluster.add_worker({"--cpus", "2"});
  auto run =
      run_grow_test::start_on(cluster, {"-n", "2:4", "--max-restarts", "1", "--grow-after", "1",
                                        "--", "sh", "-c", run_grow_test::kTicks, cluster.folder()});
  run.wait_for_output("[1] attempt 0 size 2\n");
  auto waiter = run_grow_test::start_on(cluster, {"--gpus", "1", "--", "echo", "done"});
  waiter.wait_for_output("has waited for");
  cluster.add_worker({"--cpus", "2"});
  run_grow_test::check_stays(run, cluster);

  holder.signal(SIGTERM);
  run_grow_test::check_ends_well(waiter);
  run.wait_for_output("[3] attempt 0 size 4\n");
  run_grow_test::check_ends_well(run);
}

TEST_CASE("an elastic gang that is formed anew waits for a head that stands still",
          "[launch][cluster]") {
  TestCluster cluster(1, 2);
  auto run = run_grow_test::start_on(
      cluster, {"-n", "1:2", "--max-restarts", "1", "--", "sh", "-c",
                "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; kill -STOP $0; exit 1",
                std::to_string(cluster.head().pid())});
  run.wait_for_output("the head did not answer within 5000 ms: the gang is formed once it does\n");
  cluster.head().signal(SIGCONT);
  run_grow_test::check_ends_well(run);
}

TEST_CASE("the option --grow-after of a gang that cannot grow is refused with what to give",
          "[launch]") {
  const auto refused = [](std::vector<std::string> options) {
    options.insert(options.begin(), {TROUPE_PROGRAM, "run"});
    options.insert(options.end(), {"--", "true"});
    return run(std::move(options), {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  };
  const auto fixed = refused({"-n", "2", "--max-restarts", "1", "--grow-after", "10"});
  CHECK(fixed.exit_code == 125);
  CHECK_THAT(fixed.output, Catch::Contains("give a range, as -n 2:8"));
  const auto once = refused({"-n", "1:2", "--grow-after", "never"});
  CHECK(once.exit_code == 125);
  CHECK_THAT(once.output, Catch::Contains("give --max-restarts 1 or more"));
  for (const auto* wrong : {"0", "soon", "nan"}) {
    const auto done = refused({"-n", "1:2", "--max-restarts", "1", "--grow-after", wrong});
    INFO(done.output);
    CHECK(done.exit_code == 2);
    CHECK_THAT(done.output, Catch::Contains("nor 'never'"));
  }
  CHECK(refused({"-n", "1:2", "--max-restarts", "1", "--grow-after", "1"}).exit_code == 0);
}
