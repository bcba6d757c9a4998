#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"
#include "terminal.hpp"

using namespace troupe::test;
using Catch::Contains;

/// `troupe tune` that a signal ends while programs of its trials run.
namespace sweep_interrupt_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPair = "[space]\nx = { grid = [0, 1] }\n";
/// All trials run at once, on any machine.
constexpr const char* kSmall = "[gang]\ncpus = 0.25\n";

/// So many reports have been made.
void wait_for_reports(const Sweep& sweep, std::ptrdiff_t count) {
  const auto reports = [&] {
    const auto text = sweep.content("runs/run-1/reports.jsonl");
    return std::ranges::count(text, '\n');
  };
  REQUIRE(eventually([&] { return reports() >= count; }));
}

/// No trial has come to an end by itself, or failed.
void check_nobody_is_over(const Sweep& sweep) {
  std::istringstream journal(sweep.content("runs/run-1/journal.jsonl"));
  std::string line;
  for (std::getline(journal, line); std::getline(journal, line);) {
    INFO(line);
    const auto event = nlohmann::json::parse(line);
    CHECK(event.at("event") != "ended");
    if (event.at("event") == "failed") CHECK(event.at("fault") == "ended");
  }
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials")) {
    CHECK(trial.at("status") == "unfinished");
    CHECK(trial.at("failures") == 0);
  }
}

/// All trials come to their end.
void check_resumes(const Sweep& sweep, const std::vector<std::string>& more = {},
                   const std::vector<std::string>& environment = kNoClusterForSweeps) {
  const auto done = sweep.tune("resume", more, environment);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Contains("2 trials begun, 2 under way when it ended"));
  const auto summary = sweep.summary();
  CHECK(summary.at("trials").size() == 2);
  for (const auto& trial : summary.at("trials")) CHECK(trial.at("status") == "terminated");
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/runs/run-2"));
}

}  // namespace

TEST_CASE("programs of a sweep that a signal ends have their grace, and resume goes on with them",
          "[sweep][interrupt]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Sweep sweep(R"([ -e told-$1 ] && { echo "troupe: {\"loss\": 0.$1}"; exit; }
trap 'echo > at-$1; sleep 0.5; echo told > told-$1; exit 0' TERM
echo "troupe: {\"loss\": $1}"
while :; do sleep 0.02; done)",
                    std::string(kSmall) + kPair);
  auto child = sweep.start();
  wait_for_reports(sweep, 2);
  child.signal(signal);
  REQUIRE(eventually([&] { return std::filesystem::exists(sweep.folder() + "/at-0"); }));
  child.signal(SIGHUP);  // as of a terminal that is closed then
  CHECK(exit_code_of(child) == 128 + signal);
  CHECK_THAT(child.output(), Contains("ended early: ended by the user"));
  for (const auto* trial : {"told-0", "told-1"}) CHECK(sweep.content(trial) == "told\n");
  CHECK(sweep.programs().empty());
  check_nobody_is_over(sweep);
  check_resumes(sweep);
}

TEST_CASE("programs that report all the time have their grace too where a signal ends their sweep",
          "[sweep][interrupt]") {
  const Sweep sweep(R"([ -e told-$1 ] && exit 0
trap 'sleep 0.3; echo told > told-$1; exit 0' TERM
while :; do echo "troupe: {\"loss\": $1}"; echo "troupe: {\"loss\": $1}"; sleep 0.005; done)",
                    std::string(kSmall) + kPair);
  auto child = sweep.start();
  wait_for_reports(sweep, 100);
  child.signal(SIGINT);
  CHECK(exit_code_of(child) == 128 + SIGINT);
  for (const auto* trial : {"told-0", "told-1"}) CHECK(sweep.content(trial) == "told\n");
  CHECK(sweep.programs().empty());
  check_resumes(sweep);  // with programs that have nothing left to report
}

TEST_CASE("Ctrl-C on the terminal of a sweep leaves its programs their grace",
          "[sweep][interrupt]") {
  const Sweep sweep(R"(trap 'sleep 0.5; echo told > told-$1; exit 0' TERM
echo "troupe: {\"loss\": $1}"
while :; do sleep 0.02; done)",
                    std::string(kSmall) + kPair);
  Terminal terminal({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml"},
                    {"TERM=xterm", "TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  wait_for_reports(sweep, 2);
  terminal.type("\x03");
  CHECK(terminal.end() == std::optional(128 + SIGINT));
  CHECK_THAT(terminal.output(), Contains("ended early: ended by the user (SIGINT)"));
  for (const auto* trial : {"told-0", "told-1"}) CHECK(sweep.content(trial) == "told\n");
  CHECK(sweep.programs().empty());
}

// In trial x, rank x ends at once, and so the other one's program fails, maybe before it is told.
TEST_CASE("a rank of a sweep that a signal ends has its grace whatever becomes of the others",
          "[sweep][cluster][interrupt]") {
  TestCluster cluster(2);
  const Sweep sweep(
      R"([ -e told-$1 ] && { [ $RANK = 1 ] || echo "troupe: {\"loss\": 0.$1}"; exit; }
[ $RANK = $1 ] && trap 'touch gone-$1; sleep 1; echo told > told-$1; exit 0' TERM
echo > on-$1-$GROUP_RANK
[ $RANK = 0 ] && echo "troupe: {\"loss\": $1}"
while [ $RANK = $1 -o ! -e gone-$1 ]; do sleep 0.01; done; exit 3)",
      "[gang]\nranks = 2\ncpus = 0.5\nstrategy = \"strict-spread\"\n" + std::string(kPair));
  const std::vector<std::string> there{"--address", cluster.address()};
  Child child({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml", there[0], there[1]},
              cluster.environment());
  wait_for_reports(sweep, 2);
  for (const auto* rank : {"on-0-0", "on-0-1", "on-1-0", "on-1-1"})
    REQUIRE(eventually([&] { return !sweep.content(rank).empty(); }));
  child.signal(SIGTERM);
  CHECK(exit_code_of(child) == 128 + SIGTERM);
  INFO(child.output() << sweep.content("runs/run-1/journal.jsonl"));
  for (const auto* trial : {"told-0", "told-1"}) CHECK(sweep.content(trial) == "told\n");
  CHECK(sweep.programs().empty());
  CHECK(cluster.all_is_free());
  check_nobody_is_over(sweep);
  check_resumes(sweep, there, cluster.environment());
}

TEST_CASE("programs of a sweep that ignore SIGTERM are waited for as long as the grace, and killed",
          "[sweep][interrupt]") {
  const Sweep sweep(R"(trap '' TERM; echo $$ > pid-$1
[ -e again ] && { echo "troupe: {\"loss\": 0.$1}"; exit; }
echo "troupe: {\"loss\": $1}"
while :; do sleep 0.02; done)",
                    "grace = 6\n" + std::string(kSmall) + kPair);
  auto child = sweep.start();
  wait_for_reports(sweep, 2);
  const auto began = Clock::now();
  child.signal(SIGINT);
  CHECK(exit_code_of(child) == 128 + SIGINT);
  CHECK(Clock::now() - began >= std::chrono::seconds(6));
  CHECK_THAT(child.output(), Contains("2 trials were told to end with the run ") &&
                                 Contains(" s ago: 8.0 s (grace + 2 s) after that ") &&
                                 Contains("they are killed; a second signal does it now"));
  CHECK(sweep.programs().empty());
  check_nobody_is_over(sweep);
  std::filesystem::create_directory(sweep.folder() + "/again");
  check_resumes(sweep);
}

TEST_CASE("a second signal ends a sweep whose programs have their grace, and all of them",
          "[sweep][interrupt]") {
  const Sweep sweep(
      "trap '' TERM; echo \"troupe: {\\\"loss\\\": $1}\"\n"
      "while :; do sleep 0.02; done",
      "grace = 1000\n" + std::string(kSmall) + kPair);
  auto child = sweep.start();
  wait_for_reports(sweep, 2);
  child.signal(SIGTERM);
  child.wait_for_output("they are killed; a second signal does it now");
  CHECK(sweep.programs().size() >= 2);
  child.signal(SIGINT);
  const auto status = child.wait();
  REQUIRE(status);
  CHECK(WIFSIGNALED(*status));
  CHECK(eventually([&] { return sweep.programs().empty(); }));
}

TEST_CASE("a trial that has taken over another in its processes has its grace too",
          "[sweep][interrupt]") {
  const Sweep sweep(R"(case $TROUPE_CHECKPOINT_DIR in *takeover*)
  trap 'sleep 0.5; echo told > told; exit 0' TERM; echo > waits; while :; do sleep 0.02; done;; esac
t=0; while :; do t=$((t+1)); mkdir -p $TROUPE_CHECKPOINT_DIR/$t
  echo "troupe: {\"loss\": $1, \"checkpoint\": \"$t\"}"; sleep 0.1; done)",
                    "trials = 2\nkeep_checkpoints = 2\n[scheduler]\ntype = \"pbt\"\ninterval = 2\n"
                    "max_t = 100000\nquantile = 0.5\n" +
                        std::string(kSmall) + "[space]\nx = { uniform = [0.0, 1.0] }\n");
  auto child = sweep.start();
  const auto waits = [&] { return std::filesystem::exists(sweep.folder() + "/waits"); };
  REQUIRE(eventually(waits));
  child.signal(SIGINT);
  CHECK(exit_code_of(child) == 128 + SIGINT);
  INFO(child.output());
  CHECK(sweep.content("told") == "told\n");
  CHECK(sweep.programs().empty());
}

}  // namespace sweep_interrupt_test
