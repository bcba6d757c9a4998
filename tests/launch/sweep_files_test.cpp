#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"

using namespace troupe::test;

/// What sweeps read of their programs' files, and what is read of theirs.

TEST_CASE("a C++ program reports with troupe/trial.hpp", "[sweep]") {
  const Sweep sweep("exec " + TROUPE_REPORTING_PROGRAM + " $1", kGrid);
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("best: trial 1, loss 1 at t=2"));
  CHECK_THAT(sweep.content("runs/run-1/reports.jsonl"), Catch::Contains(R"("a \"name\"":1)"));
  CHECK(std::filesystem::exists(sweep.folder() + "/runs/run-1/trials/1/made"));
}

TEST_CASE("reports are read from what a program writes for TensorBoard",
          "[sweep][tensorboard][readers]") {
  if (!std::filesystem::exists(TROUPE_READERS_PYTHON)) {
    WARN("skipped: the readers of cmake/setup/readers.txt are not installed");
    return;
  }
  const Sweep sweep("exec " + TROUPE_READERS_PYTHON + " -B write.py $1 $TROUPE_CHECKPOINT_DIR/logs",
                    "[reports]\ntensorboard = \"{checkpoint_dir}/logs\"\n[stop]\nreports = 4\n" +
                        std::string(kGrid));
  std::ofstream(sweep.folder() + "/write.py") << R"(
import sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
x, writer = float(sys.argv[1]), EventFileWriter(sys.argv[2])
for step in range(3 if x < 3 else 2000):
    for tag, value in (("lr", 0.5), ("loss", x + 1 / (1 + step))):
        values = [Summary.Value(tag=tag, simple_value=value)]
        writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=values)))
    writer.flush()
    if x == 3:
        time.sleep(0.05)
writer.close()
)";
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  const auto trials = sweep.summary().at("trials");
  CHECK(trials.at(0).at("t") == 4);  // it was stopped while it wrote
  CHECK(trials.at(1).at("t") == 3);
  CHECK(trials.at(1).at("best").get<double>() == Approx(1 + 1.0 / 3));
  CHECK(trials.at(1).at("last").at("step") == 2);
  CHECK(trials.at(1).at("last").at("lr") == 0.5);
}

TEST_CASE("a folder is sent to the nodes of a sweep, to be the working directory of its trials",
          "[sweep][cluster]") {
  const TestCluster cluster(2);
  const Sweep sweep("[ $PWD != $NOT ] || exit 5; cat data/value; touch left-here",
                    "workdir = \"sent\"\n[gang]\ncpus = 0.5\n" + std::string(kGrid));
  std::filesystem::create_directories(sweep.folder() + "/sent/data");
  std::ofstream(sweep.folder() + "/sent/data/value") << "troupe: {\"loss\": 4}\n";
  std::filesystem::rename(sweep.folder() + "/trial.sh", sweep.folder() + "/sent/trial.sh");
  auto environment = cluster.environment();
  environment.push_back("NOT=" + sweep.folder() + "/sent");
  const auto done = sweep.tune("run", {"--address", cluster.address()}, environment);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("3 terminated, 0 stopped, 0 errored"));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/sent/left-here"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("a run is shown and reported once it is over, and after it was killed", "[sweep]") {
  const Sweep sweep(R"(for t in 1 2 3; do echo "troupe: {\"loss\": $1.$t}"; sleep 0.1; done)",
                    kGrid);
  CHECK_THAT(sweep.tune("show").output, Catch::Contains("there is no run in"));
  auto child = sweep.start();
  child.wait_for_output("trial 2 started");
  child.signal(SIGKILL);
  child.wait();
  const auto killed = sweep.tune("show");
  INFO(killed.output);
  CHECK(killed.exit_code == 0);
  CHECK_THAT(killed.output, Catch::Contains("it is not over: `troupe tune resume"));
  CHECK(sweep.tune("resume").exit_code == 0);
  const auto shown = sweep.tune("show");
  CHECK_THAT(shown.output, Catch::Contains("best: trial 1, loss 1.1 at t=1"));
  CHECK_THAT(shown.output, !Catch::Contains("not over"));
  const auto as_json = nlohmann::json::parse(sweep.tune("show", {"--json"}).output);
  CHECK(as_json.at("trials").size() == 3);
  CHECK(as_json.at("best") == sweep.summary().at("best"));
  const auto page = sweep.folder() + "/page.html";
  CHECK_THAT(sweep.tune("report", {"-o", page}).output, Catch::Contains(page));
  CHECK_THAT(sweep.content("page.html"), Catch::Contains("<html"));
  // A limit of the size of files is what a full disk looks like.
  std::ofstream(page) << "an older page";
  const auto full = run({"sh", "-c",
                         "trap '' XFSZ; ulimit -f 1; exec " + TROUPE_PROGRAM + " tune report " +
                             sweep.folder() + "/sweep.toml -o " + page},
                        kNoClusterForSweeps);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.output, Catch::Contains("page.html' cannot be written (File too large)"));
  CHECK(sweep.content("page.html") == "an older page");
  CHECK(std::ranges::distance(std::filesystem::directory_iterator(sweep.folder())) == 4);
  CHECK(sweep.tune("report", {"--output", "/proc/none/page.html"}).exit_code == 1);
  CHECK(sweep.tune("show", {"--run", sweep.folder()}).exit_code == 1);
}

namespace {

// docs/sweeps.md shows it.
const std::string kPreviewOfNine =
    R"(a preview: no trial has run; times are virtual, a second for each report, and values are made up
  for 9 trials, 4 at a time
  trials that reach each rung, and the end: t=1: 9, t=3: 4, t=9: 3
  35 reports, 81 if each trial came as far as the furthest
  the 4 places were busy 73 % of the time
  which trial is the best, and when it is found, cannot be told from made-up values
)";

}  // namespace

TEST_CASE("check says how far trials would come", "[sweep]") {
  const Sweep sweep("true",
                    "trials = 9\n[scheduler]\ntype = \"asha\"\nmax_t = 9\neta = 3\n"
                    "[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = sweep.tune("check");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output,
             Catch::Contains(kPreviewOfNine + "[space] {x}: ") || Catch::EndsWith(kPreviewOfNine));
}

TEST_CASE("check says which keys its made-up values leave out", "[sweep]") {
  const Sweep sweep("true",
                    "trials = 9\ntime_budget = 2\nmax_concurrent = 1\n"
                    "[scheduler]\ntype = \"asha\"\nmax_t = 9\neta = 3\n"
                    "[stop]\nreaches = 1e6\nno_better_trials = 1\n"
                    "plateau = { reports = 1, delta = 1e6 }\ntrial_time = 1\n"
                    "cost = 1\ncost_metric = \"loss\"\n"
                    "[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = sweep.tune("check");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output,
             Catch::Contains("  for 9 trials, 1 at a time\n"
                             "  trials that reach each rung, and the end: t=1: 9, t=3: ") &&
                 Catch::Contains("  the one place was busy 100 % of the time\n") &&
                 Catch::Contains("  without stop.plateau, stop.trial_time, stop.reaches, "
                                 "stop.no_better_trials, stop.cost and time_budget, as values and "
                                 "times are made up\n"));
}

TEST_CASE("check simulates at most a thousand trials, and says so", "[sweep]") {
  const std::string scheduler = "[scheduler]\ntype = \"asha\"\nmax_t = 9\neta = 3\n";
  // Of a searcher for which a million trials would take days.
  const Sweep many("true", "trials = 1000000\n" + scheduler +
                               "[searcher]\ntype = \"gaussian_process\"\n"
                               "[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = many.tune("check");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output,
             Catch::Contains("a sweep over 1 field, for the least loss, 1000000 trials") &&
                 Catch::Contains("  for 1000 of the 1000000 trials, 4 at a time\n"
                                 "  trials that reach each rung, and the end: t=1: 1000, t=3: "));
  const Sweep grid("true", "samples = 700\n" + scheduler + std::string(kGrid));
  CHECK_THAT(grid.tune("check").output, Catch::Contains("for 1000 of the 2100 trials, "));
}

TEST_CASE("folders whose names are not UTF-8 are as good as others", "[sweep]") {
  const TemporaryFolder folder;
  const auto here = folder.path() + "/n\xc3\xa9-\xff";
  std::filesystem::create_directories(here + "/sent");
  std::ofstream(here + "/sent/trial.sh") << R"(mkdir "$1/made"
[ -n "$TROUPE_RESTORE_FROM" ] && [ -d "$TROUPE_RESTORE_FROM" ] && touch "$2/restored"
echo "troupe: {\"loss\": 1, \"checkpoint\": \"made\"}"
[ -e "$2/restored" ] || exit 5)";
  const auto file = here + "/sweep.toml";
  std::ofstream(file) << "command = [\"sh\", \"trial.sh\", \"{checkpoint_dir}\", \""
                      << folder.path()
                      << "\"]\nmetric = \"loss\"\nworkdir = \"sent\"\nmax_failures = 1\n"
                      << "trials = 1\n[space]\nx = 1\n";
  const auto checked = run({TROUPE_PROGRAM, "tune", "check", file}, kNoClusterForSweeps);
  INFO(checked.output);
  CHECK(checked.exit_code == 0);
  const auto done =
      run({TROUPE_PROGRAM, "tune", "run", file}, kNoClusterForSweeps, std::chrono::seconds(90));
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(std::filesystem::exists(folder.path() + "/restored"));
  CHECK(std::filesystem::exists(here + "/troupe-runs/run-1/trials/0/made"));
}
