#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "guard.hpp"
#include "left_program.hpp"
#include "support/cluster.hpp"
#include "terminal.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

/// That `troupe run` ends all that it has started, and when.
namespace {

using Clock = std::chrono::steady_clock;

Child start_run(std::vector<std::string> arguments, const std::vector<std::string>& environment = {
                                                        "TROUPE_ADDRESS=", "TROUPE_TOKEN="}) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run"});
  return Child(std::move(arguments), environment);
}

/// Of the default grace, between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kGrace{1500};

/// Rank 0 ignores SIGTERM, and rank 1 ends with 7 once it may: the run ends then, with its ranks,
/// and not before the grace is over. How long that takes is measured by `./run bench launch`.
void check_that_the_others_end(const std::vector<std::string>& options,
                               const std::vector<std::string>& environment) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"-n", "2"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "sh", "-c",
                                     "if [ $RANK = 0 ]; then trap '' TERM; echo pid $$; "
                                     "while :; do sleep 0.05; done; fi; "
                                     "until [ -e $0/fail ]; do sleep 0.02; done; exit 7",
                                     folder.path()});
  auto child = start_run(std::move(arguments), environment);
  child.wait_for_output("[0] pid ");
  const auto begun = Clock::now();
  std::ofstream(folder.path() + "/fail");
  const auto status = child.wait(kGuard);
  const auto took = Clock::now() - begun;
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 7);
  CHECK(took >= kGrace);
  CHECK_FALSE(is_alive(number_after(child.output(), "[0] pid")));
}

/// For a shell: rank 0 fails at once, and rank 1 ends only when it is killed.
constexpr const char* kFailsAndWaits =
    "if [ $RANK = 0 ]; then until [ -e $ready ]; do sleep 0.02; done; exit 3; fi; "
    "trap 'echo told' TERM; touch $ready; while :; do sleep 0.05; done";

/// What `--summary` says of who ended the run.
std::string stopped_by(const std::string& summary) {
  std::ifstream in(summary);
  return nlohmann::json::parse(in).at("stopped_by").get<std::string>();
}

}  // namespace

TEST_CASE("the others end after the grace, though one ignores SIGTERM", "[launch]") {
  check_that_the_others_end({}, {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
}

TEST_CASE("the others end after the grace on other nodes too", "[launch][cluster]") {
  const TestCluster cluster(2);
  check_that_the_others_end({"--address", cluster.address(), "--strategy", "strict-spread"},
                            cluster.environment());
  CHECK(cluster.all_is_free());
}

TEST_CASE("an output file at the limit of file sizes ends the ranks as a full disk does",
          "[launch]") {
  const TemporaryFolder folder;
  auto child = Child({"sh", "-c",
                      "ulimit -S -f 100; exec \"$0\" run -n 2 -- yes > "
                      "\"$1/output\"",
                      TROUPE_PROGRAM, folder.path()},
                     {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  const auto status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(WIFEXITED(*status));
  CHECK(WEXITSTATUS(*status) == 125);
  CHECK_THAT(child.output(), Catch::Contains("a standard output that cannot be written"));
}

TEST_CASE("Ctrl-C while a folder is packed ends the run and what packs it", "[launch]") {
  const TemporaryFolder folder;
  const auto tar = folder.path() + "/tar", sent = folder.path() + "/sent";
  const auto summary = folder.path() + "/summary.json";
  std::filesystem::create_directory(sent);
  std::ofstream(tar) << "#!/bin/sh\necho tar $$ > " << folder.path() << "/packs\nexec sleep 300\n";
  std::filesystem::permissions(tar, std::filesystem::perms::owner_all);
  auto child =
      start_run({"--workdir", sent, "--summary", summary, "--", "true"},
                {"TROUPE_ADDRESS=", "TROUPE_TOKEN=", "PATH=" + folder.path() + ":/usr/bin:/bin"});
  std::string packs;
  REQUIRE(eventually([&] {
    std::getline(std::ifstream(folder.path() + "/packs"), packs);
    return !packs.empty();
  }));
  const auto pid = number_after(packs, "tar");
  CHECK(is_alive(pid));
  child.signal(SIGINT);
  const auto status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
  CHECK_THAT(child.output(), Catch::Contains("SIGINT ended all ranks") &&
                                 Catch::Contains("before one was started"));
  CHECK_FALSE(is_alive(pid));
  CHECK(stopped_by(summary) == "SIGINT");
}

TEST_CASE("a limit that has ended a rank is told with it", "[launch]") {
  auto child = start_run({"--", "sh", "-c", "ulimit -c 0; ulimit -S -t 1; while :; do :; done"});
  const auto status = child.wait(kGuard);
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 128 + SIGXCPU);
  CHECK_THAT(child.output(), Catch::Contains("CPU time limit exceeded): it reached its limit of 1 "
                                             "s of CPU time (ulimit -t)"));
}

TEST_CASE("Ctrl-C on the terminal of a run ends its ranks, which have their grace", "[launch]") {
  const TemporaryFolder folder;
  Terminal terminal({TROUPE_PROGRAM, "run", "-n", "2", "--grace", "60", "--", "sh", "-c",
                     "trap 'sleep 0.3; echo told > $0/told-$RANK; exit' TERM; echo pid $$; "
                     "while :; do sleep 0.05; done",
                     folder.path()},
                    {"TERM=xterm", "TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  for (const std::string rank : {"0", "1"}) terminal.wait_for_output("[" + rank + "] pid");
  terminal.type("\x03");
  CHECK(terminal.end() == std::optional(128 + SIGINT));
  CHECK_THAT(terminal.output(), Catch::Contains("SIGINT ended all ranks"));
  for (const std::string rank : {"0", "1"}) {
    CHECK_FALSE(is_alive(number_after(terminal.output(), "[" + rank + "] pid")));
    CHECK(std::filesystem::exists(folder.path() + "/told-" + rank));
  }
}

TEST_CASE("a second Ctrl-C ends the ranks at once", "[launch]") {
  auto child = start_run({"-n", "2", "--grace", "600", "--", "sh", "-c",
                          "trap 'echo told' TERM; echo pid $$; while :; do sleep 0.05; done"});
  for (const auto* rank : {"[0] pid ", "[1] pid "}) child.wait_for_output(rank);
  child.signal(SIGINT);
  for (const auto* rank : {"[0] told", "[1] told"}) child.wait_for_output(rank);
  std::this_thread::sleep_for(100ms);  // sooner it would be an echo of the first
  child.signal(SIGINT);
  const auto status = child.wait(kGuard);
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
  CHECK_THAT(child.output(), Catch::Contains("SIGINT ended all ranks"));
  for (const auto* rank : {"[0] pid", "[1] pid"})
    CHECK_FALSE(is_alive(number_after(child.output(), rank)));
}

TEST_CASE("a signal before a restart is what has ended the run, not the failure", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json";
  auto child =
      start_run({"-n", "2", "--max-restarts", "1000000", "--grace", "600", "--summary", summary,
                 "--env", "ready=" + folder.path() + "/ready", "--", "sh", "-c", kFailsAndWaits});
  child.wait_for_output("[1] told", kGuard);
  std::optional<int> status;
  // The second ends rank 1; two at once may be one. One that comes as the program leaves would kill it.
  const std::string last = "SIGINT ended all ranks";
  for (int i = 0; i < 100 && !status && child.output().find(last) == std::string::npos; ++i) {
    child.signal(SIGINT);
    status = child.wait(200ms);
  }
  if (!status) status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
  CHECK(stopped_by(summary) == "SIGINT");
  CHECK_THAT(child.output(), Catch::Contains(last));
}

TEST_CASE("a timeout before a restart is what has ended the run, not the failure", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json";
  auto child = start_run({"-n", "2", "--max-restarts", "1000000", "--timeout", "1", "--grace", "2",
                          "--summary", summary, "--env", "ready=" + folder.path() + "/ready", "--",
                          "sh", "-c", kFailsAndWaits});
  const auto status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 124);
  CHECK(stopped_by(summary) == "--timeout");
}

TEST_CASE("a program that leaves its process group is gone after a good end", "[launch]") {
  const TemporaryFolder folder;
  auto child = start_run({"-n", "2", "--env", "FOLDER=" + folder.path(), "--", "sh", "-c",
                          "left=$FOLDER/$RANK; " + std::string(kLeave) + "exit 0"});
  CHECK(child.wait(kGuard) == 0);
  for (const auto* rank : {"/0", "/1"}) {
    const auto pid = number_in(folder.path() + rank);
    CHECK(eventually([pid] { return !is_alive(pid); }));
  }
}

TEST_CASE("a program that leaves its process group is gone after SIGINT", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto file = cluster.folder() + "/left";
  auto child = start_run({"--address", cluster.address(), "--env", "left=" + file, "--", "sh", "-c",
                          std::string(kLeave) + "echo ready; while :; do sleep 0.05; done"},
                         cluster.environment());
  child.wait_for_output("[0] ready", kGuard);
  const auto pid = number_in(file);
  CHECK(is_alive(pid));
  child.signal(SIGINT);
  const auto status = child.wait(kGuard);
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
  CHECK(eventually([pid] { return !is_alive(pid); }));
  CHECK(cluster.all_is_free());
}

TEST_CASE("a program that leaves its process group is gone after a restart", "[launch]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/left";
  // The second attempt waits until what the first has left is gone.
  auto child = start_run({"--max-restarts", "1", "--env", "left=" + file, "--", "sh", "-c",
                          "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then " + std::string(kLeave) +
                              "exit 3; fi; " + kUntilGone + "echo gone"});
  const auto status = child.wait(kGuard);
  INFO(child.output());
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(child.output(), Catch::Contains("restart 1 of 1") && Catch::Contains("[0] gone\n"));
  CHECK_FALSE(is_alive(number_in(file)));
}
