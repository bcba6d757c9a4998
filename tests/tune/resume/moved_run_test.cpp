// Runs that are found and gone on with wherever their folder lies by then.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "output/folder/earlier_run.hpp"
#include "output/folder/run_folder.hpp"
#include "run/checkpoints/checkpoint_names.hpp"
#include "support/temporary_folder.hpp"

namespace moved_run_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;
using troupe::Verdict;
using Strings = std::vector<std::string>;
using tune::detail::CheckpointNames;
namespace fs = std::filesystem;

namespace {

constexpr int kSteps = 9;
int steps_made = 0;
int interrupt_at = 0;  // before the report of this step, of all trials together; 0: never
Strings restored;      // what attempts were told to go on from

struct Config {
  double lr = 0.5;
};

/// Sums up the learning rates; the sum is the checkpoint.
void sums(Context& ctx, const Config& config) {
  int step = 0;
  double sum = 0;
  if (!ctx.restore_from().empty()) {
    restored.push_back(ctx.restore_from());
    std::ifstream(ctx.restore_from()) >> step >> sum;
  }
  while (step < kSteps) {
    ++step;
    sum += config.lr;
    fs::create_directories(ctx.storage());
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    std::ofstream(checkpoint) << step << ' ' << sum;
    if (++steps_made == interrupt_at) std::raise(SIGINT);
    if (ctx.report({{"sum", sum}}, checkpoint) == Verdict::Stop) return;
  }
}

Options<Config> options(const fs::path& storage, const SchedulerFactory& scheduler = fifo()) {
  return {.space = {{"lr", choice({0.125, 0.25, 0.5, 0.75})}},
          .trials = 4,
          .metric = "sum",
          .mode = Max,
          .scheduler = scheduler,
          .storage = storage.string(),
          .seed = 3,
          .show = Show::None,
          .in_process = true};
}

Results<Config> run(const Options<Config>& options, int stop_at = 0) {
  steps_made = 0;
  interrupt_at = stop_at;
  restored.clear();
  auto results = tune::run<sums>(options);
  clear_interrupt();
  return results;
}

Results<Config> go_on(Options<Config> options) {
  options.resume = true;
  return run(options);
}

Strings fates(const Results<Config>& results) {
  Strings all;
  for (const auto& [config, trial, text] : results.trials())
    all.push_back(text + ", " + trial.reason + ", t=" + std::to_string(trial.t));
  return all;
}

}  // namespace

TEST_CASE("a run whose folder was moved goes on from its checkpoints as if it had stayed",
          "[tune][resume][checkpoint]") {
  const auto scheduler = GENERATE(fifo(), asha({.max_t = kSteps, .eta = 3, .promote = true}),
                                  pbt({.interval = 2,
                                       .max_t = kSteps,
                                       .quantile = 0.5,
                                       .mutate = {{"lr", choice({0.125, 0.25, 0.5, 0.75})}}}));
  const std::size_t snapshot_after = GENERATE(0, 1);
  const int stop_at = GENERATE(3, 6, 11);
  CAPTURE(snapshot_after, stop_at);
  const TemporaryFolder undisturbed, folder;
  const auto expected = run(options(undisturbed.path(), scheduler));
  const auto all_steps = steps_made;

  auto wanted = options(folder.path() / "before", scheduler);
  wanted.snapshot_after = snapshot_after;
  REQUIRE(run(wanted, stop_at).ended_early() == "ended by the user (SIGINT)");
  const auto steps_before = steps_made;
  fs::create_directories(folder.path() / "elsewhere");
  fs::rename(folder.path() / "before", folder.path() / "elsewhere" / "after");
  wanted.storage = folder.path() / "elsewhere" / "after";
  const auto results = go_on(wanted);

  CHECK(fates(results) == fates(expected));
  CHECK(steps_before - 1 + steps_made == all_steps);  // the one before whose report it ended
  CHECK_THAT(results.summary(), !Contains("lost its checkpoint"));
  REQUIRE_FALSE(restored.empty());
  const auto after = wanted.storage.string();
  for (const auto& checkpoint : restored) CHECK_THAT(checkpoint, Catch::StartsWith(after));
  for (const auto& result : results.trials()) {
    CHECK_THAT(result.checkpoint().string(), Catch::StartsWith(after + "/run-1/trials/"));
    CHECK(fs::exists(result.checkpoint()));
  }
  // Nothing in the folder says where it lies, so that it can be moved once more.
  for (const auto* file : {"reports.jsonl", "summary.json"}) {
    const auto text = content_of(results.folder() / file);
    CHECK_THAT(text, Contains("\"./trials/") && !Contains(folder.path().string() + "/elsewhere"));
  }
  // A journal that was begun anew behind a late snapshot may have no checkpoint in it.
  const auto journal = content_of(results.folder() / "journal.jsonl");
  const auto snapshot =
      snapshot_after > 0 ? content_of(results.folder() / "snapshot.jsonl") : std::string();
  CHECK_THAT(journal + snapshot, Contains("./trials/"));
  CHECK_THAT(journal, !Contains(folder.path().string() + "/elsewhere"));
  CHECK_THAT(snapshot, !Contains(folder.path().string()));
}

TEST_CASE("a run that was moved deletes the checkpoints that it need not keep where they are now",
          "[tune][resume][checkpoint]") {
  const std::size_t snapshot_after = GENERATE(0, 1);
  CAPTURE(snapshot_after);
  const TemporaryFolder folder;
  auto wanted = options(folder.path() / "before");
  wanted.trials = 1;
  wanted.keep_checkpoints = 1;
  wanted.snapshot_after = snapshot_after;
  REQUIRE_FALSE(run(wanted, 5).ended_early().empty());
  fs::rename(folder.path() / "before", folder.path() / "after");
  wanted.storage = folder.path() / "after";
  const auto results = go_on(wanted);
  Strings left;
  for (const auto& entry : fs::directory_iterator(results.folder() / "trials" / "0"))
    left.push_back(entry.path().filename().string());
  CHECK(left == Strings{"step-9"});
}

TEST_CASE("a run is gone on with by a relative path, in whatever spelling", "[tune][resume]") {
  const TemporaryFolder folder;
  auto wanted = options(folder.path());
  REQUIRE_FALSE(run(wanted, 5).ended_early().empty());
  const auto run_1 = fs::canonical(folder.path()) / "run-1";
  const auto relative = fs::relative(run_1).string();
  REQUIRE(fs::path(relative).is_relative());
  const int spelling = GENERATE(0, 1, 2);
  const auto given = spelling == 0   ? relative
                     : spelling == 1 ? "./" + relative + "/"
                                     : relative + "/../run-1/.";
  CAPTURE(given);
  restored.clear();
  interrupt_at = 0;
  const auto results = tune::resume<sums>(given, wanted);
  CHECK(results.folder() == run_1);
  CHECK(restored == Strings{(run_1 / "trials" / "0" / "step-4").string()});
  CHECK(results.trials()[0].trial.t == kSteps);
}

TEST_CASE("a storage may be a relative path", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto wanted = options(fs::relative(folder.path()) / "results" / "");
  const auto interrupted = run(wanted, 5);
  CHECK(interrupted.folder() == fs::canonical(folder.path()) / "results" / "run-1");
  CHECK(go_on(wanted).folder() == interrupted.folder());
  CHECK_FALSE(fs::exists(folder.path() / "results" / "run-2"));
}

TEST_CASE("a run goes on also where an earlier one was deleted, or a later one has not begun",
          "[tune][resume]") {
  const TemporaryFolder folder;
  const bool is_deleted = GENERATE(true, false);
  CAPTURE(is_deleted);
  const auto wanted = options(folder.path());
  CHECK(run(wanted).folder().filename() == "run-1");
  CHECK(run(wanted, 5).folder().filename() == "run-2");
  if (is_deleted) {
    fs::remove_all(folder.path() / "run-1");
  } else {
    RunFolder::make(folder.path());  // its driver is killed before the first event
    REQUIRE(fs::exists(folder.path() / "run-3"));
  }
  CHECK(last_run(folder.path()).folder.filename() == "run-2");
  CHECK(run_in(folder.path()).filename() == "run-2");
  const auto results = go_on(wanted);
  CHECK(results.folder().filename() == "run-2");
  CHECK(steps_made == 4 * kSteps - 4);
}

TEST_CASE(
    "a checkpoint in the run's folder is named by its path from there, every other by its path",
    "[tune][checkpoint]") {
  const TemporaryFolder folder;
  const auto real = folder.path() / "real", link = folder.path() / "link";
  fs::create_directories(real / "run-1");
  fs::create_directory_symlink(real, link);
  const auto run_1 = (link / "run-1").string();
  const CheckpointNames names{run_1};
  CHECK(names.name_of(run_1 + "/trials/0/7") == "./trials/0/7");
  CHECK(names.name_of(run_1 + "//trials/./0/7/") == "./trials/0/7/");
  CHECK(names.name_of((real / "run-1/trials/0/7").string()) == "./trials/0/7");
  CHECK(names.path_of("./trials/0/7") == run_1 + "/trials/0/7");
  CHECK(CheckpointNames("/mnt/run-1").path_of("./trials/0/7") == "/mnt/run-1/trials/0/7");

  for (const auto& other : {run_1, run_1 + "0/trials/0/7", run_1 + ".lost-1/trials/0/7",
                            run_1 + "/../x", std::string("/x/7"), std::string("x/7"),
                            "node 3:" + run_1 + "/trials/0/7", std::string()}) {
    CAPTURE(other);
    CHECK(names.name_of(other) == other);
    CHECK(names.path_of(other) == other);
  }
  // Of a trial's working directory.
  CHECK(names.name_of("./x/7") == "x/7");
  CHECK(CheckpointNames().name_of("./x/7") == "./x/7");
  CHECK(CheckpointNames().path_of("./x/7") == "./x/7");

  Trial trial{.best_checkpoint = "./1", .checkpoint = "./3"};
  trial.earlier = {{.checkpoint = "./2"}};
  trial.launched_from = "./0";
  trial.takeovers = {{.checkpoint = "./4", .own_checkpoint = "/x/5"}};
  const auto told = names.with_paths(trial);
  CHECK(Strings{told.best_checkpoint, told.checkpoint, told.earlier[0].checkpoint,
                told.launched_from, told.takeovers[0].checkpoint} ==
        Strings{run_1 + "/1", run_1 + "/3", run_1 + "/2", run_1 + "/0", run_1 + "/4"});
  CHECK(told.takeovers[0].own_checkpoint == "/x/5");
}

}  // namespace moved_run_test
