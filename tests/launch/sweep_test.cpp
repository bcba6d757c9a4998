#include <algorithm>
#include <csignal>
#include <filesystem>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"
#include "terminal.hpp"

using namespace troupe::test;

/// `troupe tune` over shell scripts.

TEST_CASE("a sweep runs a program for each trial, and finds the best by what it prints",
          "[sweep]") {
  const Sweep sweep(R"(for t in 1 2 3; do echo "troupe: {\"loss\": $1.$t, \"seen\": $t}"; done)",
                    kGrid);
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("best: trial 1, loss 1.1 at t=1"));
  CHECK(sweep.summary().at("trials").size() == 3);
}

TEST_CASE("a program that nobody may touch is understood by a regular expression", "[sweep]") {
  const Sweep sweep("echo \"epoch 1: loss=0.$1 and more\"",
                    std::string("[reports]\npattern = 'loss=(?<loss>[0-9.]+)'\n") + kGrid);
  CHECK_THAT(sweep.tune("run").output, Catch::Contains("best: trial 1, loss 0.1"));
}

TEST_CASE("a trial that is stopped gets SIGTERM, a grace, and SIGKILL", "[sweep]") {
  const Sweep sweep(R"(trap 'echo told >> told' TERM
t=0; while [ $t -lt 2000 ]; do t=$((t+1)); echo "troupe: {\"loss\": $1}"; sleep 0.02; done)",
                    "grace = 1\n[stop]\nreports = 3\n" + std::string(kGrid));
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(sweep.content("told") == "told\ntold\ntold\n");
  // What it reported while it had its grace is no report.
  const auto reports = sweep.content("runs/run-1/reports.jsonl");
  CHECK(std::ranges::count(reports, '\n') == 9);
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials")) CHECK(trial.at("t") == 3);
  CHECK(sweep.programs().empty());
}

TEST_CASE("a program that fails is an error of its trial, with its last lines", "[sweep]") {
  const Sweep sweep(
      R"([ $1 = 1 ] && { echo "no memory" >&2; exit 9; }; echo "troupe: {\"loss\": $1}")", kGrid);
  const auto done = sweep.tune("run");
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("the program ended with exit code 9; its last lines:"));
  CHECK_THAT(done.output, Catch::Contains("no memory"));
  CHECK_THAT(done.output, Catch::Contains("best: trial 2, loss 2"));
  const std::string error = sweep.summary().at("trials").at(1).at("error");
  const std::string log = "runs/run-1/trials/1/output-rank-0.log";
  CHECK_THAT(error, Catch::Contains("all of its output is in " + sweep.folder() + "/" + log));
  CHECK(sweep.content(log) == "no memory\n");
}

TEST_CASE("the same error of many trials is told once, and without names of C++", "[sweep]") {
  const Sweep sweep(R"([ $1 = 1 ] && echo "troupe: {\"loss\": $1}"; echo "no memory" >&2; exit 9)",
                    "max_concurrent = 1\n[space]\nx = { grid = [7, 1, 2, 3, 4] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK_THAT(done.output, Catch::Contains("trial 0 errored: the program ended with exit code 9;"));
  CHECK_THAT(done.output, Catch::Contains("trial 2 errored as trial 0 did.") &&
                              Catch::Contains("trial 4 errored as trial 0 did."));
  CHECK_THAT(done.output, Catch::Contains("\n      and 3 more trials alike\n"));
  CHECK_THAT(done.output, Catch::Contains("the error of each trial is in summary.json"));
  CHECK_THAT(done.output, !Catch::Contains("::"));
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials"))
    CHECK_THAT(trial.at("error").get<std::string>(), !Catch::Contains("::"));
}

TEST_CASE("a sweep whose first programs all end with one exit code is ended, whatever they print",
          "[sweep]") {
  const Sweep sweep("echo \"dying with $1\"; exit 3",
                    "max_concurrent = 1\n[space]\nx = { grid = [3, 1, 2, 7, 8, 9, 4, 6] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.output, Catch::Contains("ended early: the first 5 trials all failed without a "
                                          "report of 'loss', and alike: the program ended with "
                                          "exit code 3\n"));
  CHECK_THAT(done.output, Catch::Contains("dying with 3") &&
                              Catch::Contains("\n      and 4 more trials alike\n") &&
                              Catch::Contains("0 terminated, 0 stopped, 5 errored"));
}

TEST_CASE("a program that never reports the metric is told what it reports instead", "[sweep]") {
  const Sweep other(R"(echo "troupe: {\"val_loss\": $1, \"epoch\": 1}")", kGrid);
  CHECK_THAT(other.tune("run").output,
             Catch::Contains("the program ended without a report of 'loss', its reports have "
                             "epoch, val_loss: `metric` in the sweep's file names one of them"));
  const Sweep silent("echo nothing", kGrid);
  CHECK_THAT(silent.tune("run").output,
             Catch::Contains("the program ended without a report of 'loss', and has no other: "
                             "print a line `troupe: {\"loss\": 0.5}`; its output is in " +
                             silent.folder() + "/runs/run-1/trials/"));
}

TEST_CASE("a program that stays silent is named, and ends when its time is over", "[sweep]") {
  const Sweep sweep("echo \"troupe: {\\\"loss\\\": $1}\"; exec sleep 100\n",
                    "notice_silence = 1\n[stop]\ntrial_time = 10\n[space]\nx = { grid = [3] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("trial 0 has not reported for ") &&
                              Catch::Contains("and keeps its place; stop.trial_time ends it 10.0 s "
                                              "after its first start: ") &&
                              Catch::Contains("last printed 'troupe: {\"loss\": 3}'"));
  const auto trial = sweep.summary().at("trials").at(0);
  CHECK(trial.at("status") == "terminated");
  CHECK_THAT(trial.at("reason").get<std::string>(), Catch::EndsWith("without another report"));

  const Sweep without_limit("sleep 8; echo \"troupe: {\\\"loss\\\": $1}\"\n",
                            "notice_silence = 1\n[space]\nx = { grid = [3] }\n");
  CHECK_THAT(without_limit.tune("run").output,
             Catch::Contains("and keeps its place; stop.trial_time would end it: ") &&
                 Catch::Contains("has printed no line to ") &&
                 Catch::Contains("runs/run-1/trials/0/output-rank-0.log"));
}

TEST_CASE("a sweep ends when it has cost as much as it may, and a trial on a plateau", "[sweep]") {
  const std::string reports =
      "for t in 1 2 3 4 5 6 7 8 9; do echo \"troupe: {\\\"loss\\\": 1, \\\"seconds\\\": 2}\"; "
      "done\n";
  const Sweep paid(reports, "max_concurrent = 1\n[stop]\ncost = 5\ncost_metric = \"seconds\"\n" +
                                std::string(kGrid));
  const auto done = paid.tune("run");
  CHECK_THAT(done.output,
             Catch::Contains("ended early: its trials cost 6 of seconds, as stop.cost says"));
  const Sweep flat(reports, "[stop]\nplateau = { reports = 4 }\n" + std::string(kGrid));
  CHECK(flat.tune("run").exit_code == 0);
  const auto summary = flat.summary();
  for (const auto& trial : summary.at("trials")) {
    CHECK(trial.at("t") == 5);
    CHECK(trial.at("reason") == "loss is no better than 4 reports ago");
  }
}

TEST_CASE("what programs print is on the terminal above the table, with trial and rank",
          "[sweep]") {
  const Sweep sweep("echo \"hello of $1\"\necho \"troupe: {\\\"loss\\\": $1}\"\n",
                    "print = true\nmax_concurrent = 1\n[space]\nx = { grid = [3, 1] }\n");
  Terminal terminal({TROUPE_PROGRAM, "tune", "run", sweep.folder() + "/sweep.toml"},
                    {"TERM=xterm", "TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  terminal.wait_for_output("A\r\x1b[J[trial 0] ");  // in place of the table
  terminal.wait_for_output("[trial 0] hello of 3\r\n");
  terminal.wait_for_output("[trial 1] hello of 1\r\n");
  terminal.wait_for_output("results: ");
}

TEST_CASE("each line that a trial of several ranks prints has its trial and rank before it",
          "[sweep]") {
  const Sweep sweep("echo \"hello of $RANK\"\necho \"troupe: {\\\"loss\\\": $1}\"\n",
                    "print = true\ntrials = 1\n[gang]\nranks = 2\ncpus = 0.5\n[space]\nx = 1\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("\n[trial 0 rank 0] hello of 0\n") &&
                              Catch::Contains("\n[trial 0 rank 1] hello of 1\n"));
}

TEST_CASE("the traceback that a trial leaves is in its error, each attempt's own", "[sweep]") {
  const Sweep sweep(R"(echo "troupe: {\"loss\": $1}"; [ $1 = 1 ] || exit 0
[ -e $TORCHELASTIC_ERROR_FILE ] && exit 5
echo '{"message": "ValueError: no memory"}' > $TORCHELASTIC_ERROR_FILE; exit 9)",
                    "max_failures = 1\n" + std::string(kGrid));
  const auto done = sweep.tune("run");
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("the program ended with exit code 9; its traceback:") &&
                              Catch::Contains("ValueError: no memory") &&
                              !Catch::Contains("exit code 5"));
}

TEST_CASE("a trial's program knows its configuration, its ranks and its checkpoints", "[sweep]") {
  const Sweep sweep(
      R"(echo "$RANK of $WORLD_SIZE $TROUPE_TRIAL_CONFIG $GREETING" >> seen-$1-$RANK
mkdir -p $TROUPE_CHECKPOINT_DIR/one; [ $RANK = 0 ] || exit 0
echo "troupe: {\"loss\": $1, \"checkpoint\": \"one\"}")",
      "[gang]\nranks = 2\ncpus = 0.5\n[env]\nGREETING = \"hi\"\n" + std::string(kGrid));
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(sweep.content("seen-2-0") == "0 of 2 {\"x\": 2} hi\n");
  CHECK(sweep.content("seen-2-1") == "1 of 2 {\"x\": 2} hi\n");
}

TEST_CASE("values reach a program in its environment and in a file", "[sweep]") {
  const Sweep sweep(
      R"sh([ "$FILE" = "$TROUPE_TRIAL_CONFIG_FILE" ] && [ "$FILE" = "$TROUPE_CHECKPOINT_DIR/config.json" ]
same=$?; echo "$same $RATE $TEXT $(cat $FILE)" > seen-$1-$RANK
[ $RANK = 1 ] || echo "troupe: {\"loss\": $RATE}")sh",
      "[gang]\nranks = 2\ncpus = 0.5\n[env]\nRATE = \"1{x}\"\nTEXT = \"{{x}}\"\n"
      "FILE = \"{config_file}\"\n[space]\nx = { grid = [3, 1, 2] }\nname = \"a \\\"b\\\"\"\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK_THAT(done.output, Catch::Contains("loss 11"));
  for (const auto* rank : {"0", "1"}) {
    CHECK(sweep.content(std::string("seen-2-") + rank) ==
          "0 12 {x} {\"x\": 2, \"name\": \"a \\\"b\\\"\"}\n");
  }
}

TEST_CASE("a program has a thread for each of its CPUs, unless its user says otherwise",
          "[sweep]") {
  const auto threads = [](const std::string& more, const std::string& mine) {
    const Sweep sweep("echo \"troupe: {\\\"loss\\\": $OMP_NUM_THREADS}\"",
                      "trials = 1\n[space]\nx = 1\n" + more);
    auto environment = kNoClusterForSweeps;
    environment.push_back(mine);
    const auto done = sweep.tune("run", {}, environment);
    INFO(done.output);
    CHECK(done.exit_code == 0);
    return sweep.summary().at("best").at("best").get<int>();
  };
  CHECK(threads("", "UNRELATED=1") == 1);
  CHECK(threads("", "OMP_NUM_THREADS=5") == 5);
  CHECK(threads("[env]\nOMP_NUM_THREADS = \"7\"\n", "OMP_NUM_THREADS=5") == 7);
}

TEST_CASE("a line that is searched in part is told of in the log and in the error", "[sweep]") {
  const Sweep sweep("head -c 3000000 /dev/zero | tr '\\0' x; echo ' loss=1'; echo 'loss=x'",
                    "[reports]\npattern = 'loss=(?<loss>[0-9.]+)'\n[space]\nx = { grid = [1] }\n");
  const auto done = sweep.tune("run");
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.output.substr(0, 5000), Catch::Contains("a line is longer than 16 KiB"));
  const auto log = sweep.content("runs/run-1/trials/0/output-rank-0.log");
  const std::string notice = "[troupe: a line is longer than 16 KiB, and ";
  const auto first = log.find(notice);
  REQUIRE(first != std::string::npos);
  CHECK(log.find(notice, first + 1) == std::string::npos);
}

TEST_CASE("a population goes on from checkpoints that its programs write", "[sweep]") {
  const Sweep sweep(
      R"(t=0; [ -n "$TROUPE_RESTORE_FROM" ] && t=$(cat $TROUPE_RESTORE_FROM/t)
while [ $t -lt 8 ]; do
  t=$((t+1)); mkdir -p $TROUPE_CHECKPOINT_DIR/$t; echo $t > $TROUPE_CHECKPOINT_DIR/$t/t
  echo "troupe: {\"loss\": $1, \"checkpoint\": \"$t\"}"; sleep 0.05
done)",
      "trials = 4\n[scheduler]\ntype = \"pbt\"\ninterval = 2\nmax_t = 8\nsynchronous = true\n"
      "[gang]\ncpus = 0.5\n[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_FALSE(sweep.content("runs/run-1/pbt.jsonl").empty());
}

TEST_CASE("a sweep that was killed is gone on with", "[sweep]") {
  const Sweep sweep(R"(for t in 1 2 3 4 5; do echo "troupe: {\"loss\": $1.$t}"; sleep 0.1; done)",
                    kGrid);
  auto child = sweep.start();
  child.wait_for_output("trial 2 started");
  child.signal(SIGKILL);
  child.wait();
  CHECK(eventually([&] { return sweep.programs().empty(); }));
  const auto done = sweep.tune("resume");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(sweep.summary().at("trials").size() == 3);
  const auto over = sweep.tune("resume");
  CHECK(over.exit_code == 1);
  CHECK_THAT(over.output,
             Catch::Contains("run-1 has come to its end") && Catch::Contains("`troupe tune run "));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/runs/run-2"));
}

TEST_CASE("a run that is not over is told of by the next one, and can be gone on with after it",
          "[sweep]") {
  const Sweep sweep(R"(echo "troupe: {\"loss\": $1}"; [ -e all ] || sleep 600)", kGrid);
  auto child = sweep.start();
  child.wait_for_output("trial 0 started");
  child.signal(SIGKILL);
  child.wait();
  std::ofstream(sweep.folder() + "/all").flush();
  const auto first = sweep.folder() + "/runs/run-1";
  const auto next = sweep.tune("run");
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.output, Catch::Contains("note: " + first + " is not over: `troupe tune resume " +
                                          sweep.folder() + "/sweep.toml --run " + first +
                                          "` goes on with it; this is a new run\n"));
  CHECK(sweep.summary(2).at("trials").size() == 3);
  CHECK_THAT(sweep.tune("show", {"--run", first}).output,
             Catch::Contains("it is not over: `troupe tune resume " + sweep.folder() +
                             "/sweep.toml --run " + first + "` goes on with it"));
  const auto resumed = sweep.tune("resume", {"--run", first});
  INFO(resumed.output);
  CHECK(resumed.exit_code == 0);
  CHECK(sweep.summary(1).at("trials").size() == 3);
  CHECK_THAT(sweep.tune("run").output, !Catch::Contains("is not over"));
}

TEST_CASE("a sweep is checked without running it", "[sweep]") {
  const Sweep sweep("touch ran", kGrid);
  const auto done = sweep.tune("check");
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("a sweep over 1 field, for the least loss"));
  CHECK_THAT(done.output, Catch::Contains("sh trial.sh "));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/ran"));
  const Sweep elsewhere("", "workdir = \"sent\"\n" + std::string(kGrid));
  CHECK(elsewhere.tune("check").exit_code == 1);
  CHECK_THAT(elsewhere.tune("check").output,
             Catch::Contains("sweep.toml:4:11: there is no folder"));
  CHECK_THAT(done.output, !Catch::Contains("GPU"));
  const auto large = Sweep("", "[gang]\nranks = 2\ngpus = 64\n" + std::string(kGrid)).tune("check");
  CHECK(large.exit_code == 0);  // so may they
  CHECK_THAT(large.output, Catch::Contains("[gang] gpus: a trial needs 128 GPUs, and this machine "
                                           "has "));
  const auto unknown = sweep.tune("check", {}, {"TROUPE_ADDRESS=", "PATH=/nowhere"});
  CHECK(unknown.exit_code == 0);  // other machines may have it
  CHECK_THAT(unknown.output, Catch::Contains("sweep.toml:1:11: there is no program 'sh'") &&
                                 Catch::Contains("no trial can run on this machine"));
  const auto none = sweep.tune("run", {}, {"TROUPE_ADDRESS=", "PATH=/nowhere"});
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.output, Catch::Contains("sweep.toml:1:11: there is no program 'sh'"));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/runs"));
  const Sweep wrong("", "metrics = \"loss\"\n" + std::string(kGrid));
  const auto refused = wrong.tune("check");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output,
             Catch::Contains("sweep.toml:4:1: there is no key metrics; did you mean 'metric'?"));
}

TEST_CASE("a check names fields that nothing gives to the program", "[sweep]") {
  const auto checked = [](const std::string& more) {
    const auto done = Sweep("", more).tune("check");
    CHECK(done.exit_code == 0);
    return done.output;
  };
  CHECK_THAT(checked(kGrid), !Catch::Contains("[space]"));
  const auto more = std::string(kGrid) + "depth = 3\nrate = { uniform = [0.0, 1.0] }\n";
  CHECK_THAT(checked("trials = 3\n" + more),
             Catch::Contains("[space] depth and rate: neither command nor [env] names them\n") &&
                 Catch::Contains("does not read TROUPE_TRIAL_CONFIG"));
  CHECK_THAT(checked("trials = 3\n[env]\nRATE = \"{rate}\"\n" + more),
             Catch::Contains("[space] depth: neither command nor [env] names {depth}\n"));
  CHECK_THAT(checked("trials = 3\n[env]\nALL = \"{config_file}\"\n" + more),
             !Catch::Contains("[space]"));
}

TEST_CASE("a check names a gang for which there is no room", "[sweep][cluster]") {
  const auto checked = [](const std::string& gang, const std::vector<std::string>& more = {},
                          const std::vector<std::string>& environment = kNoClusterForSweeps) {
    const auto done = Sweep("", "[gang]\n" + gang + "\n" + kGrid).tune("check", more, environment);
    CHECK(done.exit_code == 0);  // machines may come
    return done.output;
  };
  CHECK_THAT(checked("cpus = 0.01"), !Catch::Contains("[gang]"));
  CHECK_THAT(checked("ranks = 4\ncpus = 5000"),
             Catch::Contains("[gang] cpus: a trial needs 20000 cores, and this machine has ") &&
                 Catch::Contains("so that no trial can run on this machine alone\n"));
  CHECK_THAT(checked("ranks = 2\ncpus = 0.01\nstrategy = \"strict-spread\""),
             Catch::Contains("[gang] strategy: a trial needs 2 nodes of its own, and this machine "
                             "is one\n"));
  CHECK_THAT(checked("ranks = 4\nper_node = 2\ncpus = 0.01"),
             Catch::Contains("[gang] per_node: a trial needs 2 nodes of its own"));
  const TestCluster cluster(2, 2);
  const auto there = [&](const std::string& gang) {
    return checked(gang, {"--address", cluster.address()}, cluster.environment());
  };
  CHECK_THAT(there("ranks = 4\nper_node = 2"), !Catch::Contains("[gang]"));
  CHECK_THAT(there("ranks = 3\nstrategy = \"strict-spread\""),
             Catch::Contains("a trial needs 3 nodes of its own, and the cluster at " +
                             cluster.address() + " has 2\n"));
  CHECK_THAT(there("cpus = 3"),
             Catch::Contains("[gang] cpus: a rank needs 3 cores, and the largest node of the "
                             "cluster at " +
                             cluster.address() + " has 2\n"));
  CHECK_THAT(there("ranks = 4\nstrategy = \"strict-pack\""),
             Catch::Contains("strict-pack has a trial on one node, which needs 4 cores"));
  CHECK_THAT(there("ranks = 2\ngpus = 1"),
             Catch::Contains("[gang] gpus: a trial needs 2 GPUs, and the cluster at " +
                             cluster.address() + " has none\n"));
}

TEST_CASE("a sweep runs on the nodes of a cluster", "[sweep][cluster]") {
  const TestCluster cluster(2);
  const Sweep sweep(R"(echo "troupe: {\"loss\": $1}")", kGrid);
  const auto done = sweep.tune("run", {"--address", cluster.address()}, cluster.environment());
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("best: trial 1, loss 1"));
  CHECK(cluster.all_is_free());
}
