#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include <catch2/catch.hpp>

#include "left_program.hpp"
#include "sweep_support.hpp"
#include "terminal.hpp"

using namespace troupe::test;
using Catch::Contains;

/// How `troupe tune` ends, what is left then, and what it says of that later.

namespace {

/// Trials that report once and then wait to be ended.
constexpr const char* kWaits = "echo \"troupe: {\\\"loss\\\": $1}\"; exec sleep 100\n";

/// One trial of these has reported.
void wait_for_report(const Sweep& sweep) {
  REQUIRE(eventually([&] { return !sweep.content("runs/run-1/reports.jsonl").empty(); }));
}

/// What `show --json` and the report call trial 0, of which there is one attempt.
std::pair<std::string, std::string> others_say(const Sweep& sweep) {
  const auto shown = nlohmann::json::parse(sweep.tune("show", {"--json"}).output);
  REQUIRE(sweep.tune("report", {"-o", sweep.folder() + "/page.html"}).exit_code == 0);
  const auto page = sweep.content("page.html");
  const std::string before = "<script type=\"application/json\" id=\"data\">";
  const auto at = page.find(before);
  REQUIRE(at != std::string::npos);
  const auto from = at + before.size();
  const auto data = nlohmann::json::parse(page.substr(from, page.find('<', from) - from));
  const std::string status = data.at("trials").at(0).at("status");
  CHECK(data.at("attempts").at(0).at("status") == status);
  return {shown.at("trials").at(0).at("status"), status};
}

}  // namespace

TEST_CASE("a sweep that a signal ends has its number in the exit code", "[sweep]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Sweep sweep(kWaits, "grace = 1\n" + std::string(kGrid));
    auto child = sweep.start();
    wait_for_report(sweep);
    child.signal(signal);
    CHECK(exit_code_of(child) == 128 + signal);
    CHECK_THAT(child.output(), Contains("ended early: ended by the user"));
    CHECK_FALSE(sweep.summary().at("best").is_null());
  }
}

TEST_CASE("a sweep whose terminal is closed ends as by SIGTERM", "[sweep]") {
  const Sweep sweep(kWaits, "grace = 1\n" + std::string(kGrid));
  Terminal terminal({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml"},
                    {"TERM=xterm", "TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  wait_for_report(sweep);
  CHECK(terminal.close() == std::optional(128 + SIGTERM));
  CHECK(sweep.summary().at("ended_early") == "ended by the user (SIGTERM)");
}

TEST_CASE("a sweep whose cluster ends has an exit code of its own", "[sweep][cluster]") {
  TestCluster cluster(1);
  const Sweep sweep(kWaits, kGrid);
  Child child({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml", "--address",
               cluster.address()},
              cluster.environment());
  wait_for_report(sweep);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  CHECK(exit_code_of(child) == 125);
  CHECK_THAT(child.output(), Contains("ended early: the cluster was stopped"));
  CHECK(cluster.worker(0).wait());
  CHECK(cluster.head().wait());
}

TEST_CASE("show tells a run that goes on from one whose driver has ended", "[sweep]") {
  const Sweep sweep(kWaits, "max_concurrent = 1\n" + std::string(kGrid));
  auto child = sweep.start();
  wait_for_report(sweep);
  const auto running = sweep.tune("show").output;
  CHECK_THAT(running, Contains("it is running in process " + std::to_string(child.pid()) + " on "));
  CHECK_THAT(running, !Contains("not over"));
  CHECK_THAT(running, Contains("1 running") && !Contains("interrupted"));
  CHECK(others_say(sweep) == std::pair<std::string, std::string>("running", "running"));
  child.signal(SIGKILL);
  child.wait();
  const auto killed = sweep.tune("show").output;
  CHECK_THAT(killed, Contains("its driver has ended, and none of its trials runs any more "
                              "(were under way: 0)"));
  CHECK_THAT(killed, !Contains("it is running"));
  CHECK_THAT(killed, Contains("1 interrupted") && !Contains("running"));
  CHECK(others_say(sweep) == std::pair<std::string, std::string>("interrupted", "interrupted"));
}

TEST_CASE("a sweep that was interrupted names the run that goes on, which need not be the last",
          "[sweep]") {
  const Sweep sweep(kWaits, "grace = 1\nmax_concurrent = 1\n" + std::string(kGrid));
  const auto file = sweep.folder() + "/sweep.toml", first = sweep.folder() + "/runs/run-1";
  const auto interrupted = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "tune"});
    Child child(std::move(arguments), kNoClusterForSweeps);
    child.wait_for_output("trial 0 started");
    child.signal(SIGINT);
    CHECK(exit_code_of(child) == 130);
    return child.output();
  };
  const auto hint = "to go on with it: troupe tune resume " + file;
  CHECK_THAT(interrupted({"run", file}), Contains(hint + "\n"));
  CHECK_THAT(interrupted({"run", file}), Contains(hint + "\n"));
  CHECK_THAT(interrupted({"resume", file, "--run", first}),
             Contains(hint + " --run " + first + "\n"));
  CHECK_THAT(sweep.tune("show", {"--run", first}).output,
             Contains(hint + " --run " + first + "\n"));
  CHECK_THAT(sweep.tune("show").output, Contains(hint + "\n"));
}

TEST_CASE("what a sweep says while it runs names the keys of its file", "[sweep]") {
  const Sweep large("", "[gang]\ncpus = 1000\n" + std::string(kGrid));
  CHECK_THAT(large.tune("run").output,
             Contains("the gang of a trial (gang.ranks = 1, each with what gang asks for)"));
  const auto file = [](const Sweep& sweep, const std::string& more) {
    std::ofstream(sweep.folder() + "/sweep.toml")
        << "command = [\"sh\", \"trial.sh\", \"{x}\"]\nmetric = \"loss\"\nstorage = \"runs\"\n"
        << "trials = 2\nmax_concurrent = 1\n"
        << more << "[space]\nx = 1\n";
  };
  const Sweep alike(kWaits);
  file(alike, "");
  auto child = alike.start();
  wait_for_report(alike);
  child.signal(SIGKILL);
  child.wait();
  CHECK_THAT(child.output(), Contains("no field of space has more than one value"));
  file(alike, "seed = 5\n");
  CHECK_THAT(alike.tune("resume").output,
             Contains("cannot go on with ") &&
                 Contains("began, or begin a new run: `troupe tune run ") && !Contains(" .known"));
}

TEST_CASE("the name of a sweep's file is said as it is", "[sweep]") {
  const Sweep sweep("", kGrid);
  std::filesystem::rename(sweep.folder() + "/sweep.toml", sweep.folder() + "/.sweep.toml");
  const auto done =
      run({"sh", "-c",
           "cd " + sweep.folder() + " && exec " + TROUPE_PROGRAM + " tune resume .sweep.toml"},
          kNoClusterForSweeps);
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.output, Contains("`troupe tune run .sweep.toml` begins one"));
}

TEST_CASE("what a trial's program has left in a session of its own ends with the trial",
          "[sweep]") {
  std::string end, more, status;
  SECTION("which has ended well") {
    end = "exit 0";
    status = "terminated";
  }
  SECTION("which has failed") {
    end = "exit 3";
    status = "errored";
  }
  SECTION("which its scheduler has stopped") {
    end = "while :; do sleep 0.05; echo \"$report\"; done";
    more = "grace = 1\n[scheduler]\ntype = \"asha\"\nmax_t = 3\n";
    status = "terminated";
  }
  // The second trial waits until what the first has left is gone, and so before the sweep ends.
  const Sweep sweep("left=$PWD/left; report=\"troupe: {\\\"loss\\\": -$1}\"\n" +
                        std::string("if [ $1 = 0 ]; then ") + kLeave + "echo \"$report\"; " + end +
                        "; fi\n" + kUntilGone + "echo \"$report\"\n",
                    "max_concurrent = 1\n" + more + "[space]\nx = { grid = [0, 1] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  const auto trials = sweep.summary().at("trials");
  CHECK(trials.at(0).at("status") == status);
  CHECK(trials.at(1).at("status") == "terminated");
  CHECK_FALSE(is_alive(number_in(sweep.folder() + "/left")));
  CHECK(sweep.programs().empty());
}

TEST_CASE("what a trial's program has left in a session of its own ends with Ctrl-C", "[sweep]") {
  const Sweep sweep("left=$PWD/left; " + std::string(kLeave) + kWaits,
                    "grace = 1\n[space]\nx = { grid = [0] }\n");
  Terminal terminal({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml"},
                    {"TERM=xterm", "TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  wait_for_report(sweep);
  const auto left = number_in(sweep.folder() + "/left");
  CHECK(is_alive(left));
  terminal.type("\x03");
  CHECK(terminal.end() == std::optional(128 + SIGINT));
  CHECK_FALSE(is_alive(left));
  CHECK(sweep.programs().empty());
}

TEST_CASE("resume ends what a sweep left running whose processes were all killed", "[sweep]") {
  const Sweep sweep(R"(if [ -e first ]; then
  grep -q '^State:.[^Z]' "/proc/$(cat first)/status" 2> /dev/null && touch overlap
  echo "troupe: {\"loss\": $1}"; exit
fi
echo "troupe: {\"loss\": $1}"; echo $$ > first; while :; do sleep 0.1; done)",
                    "max_concurrent = 1\n" + std::string(kGrid));
  auto environment = kNoClusterForSweeps;
  environment.push_back("MARK_LEFT_BY=" + sweep.folder());
  Child child({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml"}, environment);
  wait_for_report(sweep);
  REQUIRE(eventually([&] { return !sweep.content("first").empty(); }));
  const pid_t program = std::stoi(sweep.content("first"));
  // Its guardian too, which would end the program: none of them runs when the first is killed.
  auto its_own = processes_with(environment.back());
  const auto programs = sweep.programs();
  std::erase_if(its_own, [&](pid_t pid) { return std::ranges::count(programs, pid) > 0; });
  REQUIRE(its_own.size() >= 3);
  for (const int signal : {SIGSTOP, SIGKILL})
    for (const auto pid : its_own) ::kill(pid, signal);
  child.wait();
  CHECK(eventually([&] { return std::ranges::none_of(its_own, is_alive); }));
  REQUIRE(is_alive(program));
  const auto done = sweep.tune("resume");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/overlap"));
  CHECK_FALSE(is_alive(program));
  CHECK(sweep.programs().empty());
  CHECK_THAT(sweep.content("runs/run-1/trials/0/output-rank-0.log"),
             Contains("that an earlier attempt of this trial had left running]\n"));
  for (const auto pid : programs) ::kill(pid, SIGKILL);  // where the sweep has not
}

TEST_CASE("resume notes what has changed of the program", "[sweep]") {
  const auto file = [](const Sweep& sweep, const std::string& word, const std::string& rate) {
    std::ofstream(sweep.folder() + "/sweep.toml")
        << "command = [\"sh\", \"trial.sh\", \"{x}\", \"" << word
        << "\"]\nmetric = \"loss\"\nstorage = \"runs\"\nmax_concurrent = 1\n"
        << kGrid << "[env]\nRATE = \"" << rate << "\"\nSAME = \"1\"\n";
  };
  const Sweep sweep(R"(echo "troupe: {\"loss\": $1}"; sleep $2)");
  file(sweep, "100", "1");
  auto child = sweep.start();
  wait_for_report(sweep);
  child.signal(SIGKILL);
  child.wait();
  file(sweep, "0", "2");
  const auto done = sweep.tune("resume");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output,
             Contains(R"(note: command was ["sh","trial.sh","{x}","100"] when )") &&
                 Contains(R"(began, and is ["sh","trial.sh","{x}","0"] for what is run)") &&
                 Contains(R"(note: env.RATE was "1" when )") && !Contains("SAME"));
  CHECK_THAT(sweep.content("runs/run-1/program.json"), Contains("\"RATE\": \"2\""));
}

TEST_CASE("check refuses what run refuses, in the same words, and leaves nothing behind",
          "[sweep]") {
  const auto refusal = [](const std::string& more) {
    const Sweep sweep("touch ran\n");
    std::ofstream(sweep.folder() + "/sweep.toml")
        << "command = [\"sh\", \"trial.sh\"]\nmetric = \"loss\"\n"
        << more;
    std::filesystem::create_symlink("nowhere", sweep.folder() + "/link");
    const auto checked = sweep.tune("check"), run = sweep.tune("run");
    CHECK(checked.exit_code == 1);
    CHECK(run.exit_code == 1);
    CHECK(checked.output == run.output);
    CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/ran"));
    CHECK(std::filesystem::is_symlink(sweep.folder() + "/link"));
    return checked.output;
  };
  const std::string grid = kGrid;
  CHECK_THAT(refusal("[space]\nx = { uniform = [0.0, 1.0] }\n"),
             Contains("sweep.toml:1:1: trials is missing, and no field is a grid"));
  CHECK_THAT(refusal("mlflow = \"https://a?b\"\n" + grid),
             Contains("sweep.toml:3:10: mlflow cannot be: ") && Contains("no query"));
  CHECK_THAT(refusal("mlflow = \"nonsense\"\n" + grid), Contains("it has to begin with http://"));
  CHECK_THAT(refusal("storage = \"/proc/x\"\n" + grid),
             Contains("sweep.toml:3:11: ") && Contains("cannot make /proc/x"));
  CHECK_THAT(refusal("storage = \"sweep.toml\"\n" + grid), Contains("sweep.toml:3:11: "));
  CHECK_THAT(refusal("storage = \"link\"\n" + grid),
             Contains("link is a link to nowhere, which is not there"));
  CHECK_THAT(
      refusal("[stop]\nreports = 1\n[scheduler]\ntype = \"median_stopping\"\ngrace = 5\n" + grid),
      Contains("nobody would be judged"));
  const Sweep fine("", grid);
  CHECK(fine.tune("check").exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(fine.folder() + "/runs"));
}

TEST_CASE("a report with a checkpoint that is not there fails its trial", "[sweep]") {
  const Sweep sweep(R"(mkdir "$TROUPE_CHECKPOINT_DIR/2"
echo "troupe: {\"loss\": $1, \"checkpoint\": \"$1\"}")",
                    kGrid);
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK_THAT(done.output, Contains("the program reported the checkpoint '1', and there is no "
                                   "folder ") &&
                              Contains("best: trial 2, loss 2"));
}
