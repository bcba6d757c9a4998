#include <troupe/tune.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "python.hpp"
#include "support/temporary_folder.hpp"

namespace in_process_test {

using namespace troupe;

namespace {

struct Config {
  double lr = 0.1;
  int batch = 32;
  int steps = 27;
};

double train(tune::Context& ctx, const Config& config) {
  double accuracy = 0;
  for (int step = 1; step <= config.steps; ++step) {
    accuracy = config.lr * (1 - 1.0 / (1 + step));
    if (ctx.report({{"step", step}, {"accuracy", accuracy}}) == Verdict::Stop) break;
  }
  return accuracy;
}

void fails_on_large_batches(tune::Context& ctx, const Config& config) {
  if (config.batch > 64) throw std::length_error("batch too large");
  ctx.report({{"accuracy", config.batch}});
}

/// And then how long it took.
void reports_nan(tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", std::numeric_limits<double>::quiet_NaN()}});
  for (int step = 1; step < config.steps; ++step) ctx.report({{"seconds", 0.5}});
}

/// Never looks at a verdict.
void deaf(tune::Context& ctx, const Config& config) {
  for (int step = 0;; ++step) ctx.report({{"accuracy", config.lr}});
}

std::vector<std::string> storages;

/// In its third trial, it gives the run's folder to somebody else.
void loses_its_folder(tune::Context& ctx, const Config& config) {
  namespace fs = std::filesystem;
  storages.push_back(ctx.storage());
  fs::create_directories(ctx.storage());
  ctx.report({{"accuracy", config.lr}});
  if (storages.size() != 3) return;
  const auto run = fs::path(ctx.storage()).parent_path().parent_path();
  fs::remove_all(run);
  fs::create_directory(run);
  std::ofstream(run / "summary.json") << "theirs";
}

void interrupts_itself(tune::Context& ctx, const Config& config) {
  for (int step = 0;; ++step) {
    if (step == 3) std::raise(SIGINT);
    ctx.report({{"accuracy", config.lr}});
  }
}

}  // namespace

TEST_CASE("a run whose folder is removed says so, and leaves alone what takes its name",
          "[tune][run]") {
  const tune::TemporaryFolder folder;
  storages.clear();
  const auto results = tune::run<loses_its_folder>({.space = {{"lr", tune::uniform(0, 1)}},
                                                    .trials = 6,
                                                    .metric = "accuracy",
                                                    .mode = tune::Max,
                                                    .storage = folder.path(),
                                                    .tensorboard = true,
                                                    .show = tune::Show::None,
                                                    .in_process = true});
  CHECK(results.trials().size() == 6);
  CHECK(results.best().value() > 0);
  CHECK_THAT(results.summary(), Catch::Contains("run-1 was removed or renamed while the run"));
  CHECK(results.folder().empty());
  const auto run = folder.path() / "run-1";
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run))
    left.push_back(entry.path().filename().string());
  CHECK(left == std::vector<std::string>{"summary.json"});
  CHECK(tune::content_of(run / "summary.json") == "theirs");
  REQUIRE(storages.size() == 6);
  CHECK_THAT(storages[2], Catch::StartsWith(run.string() + "/"));
  CHECK_THAT(storages[3], Catch::StartsWith(run.string() + ".lost-"));
}

TEST_CASE("a search in this process finds the best configuration and gives it back typed",
          "[tune][run]") {
  // [in process]
  const auto results = tune::run<train>(
      {.space = {{"lr", tune::loguniform(1e-3, 1.0)}, {"batch", tune::choice({32, 64, 128})}},
       .trials = 30,
       .metric = "accuracy",
       .mode = tune::Max,
       .scheduler = tune::asha({.max_t = 27, .eta = 3}),
       .seed = 1,
       .show = tune::Show::None,
       .in_process = true});
  // [/in process]

  REQUIRE(results.trials().size() == 30);
  for (const auto& trial : results.trials()) CHECK(trial.config.lr <= results.best().config.lr);
  CHECK(results.best().value() == Approx(results.best().config.lr * (1 - 1.0 / 28)));
  CHECK(results.best().trial.status == tune::Status::Terminated);
  CHECK(results.ended_early().empty());
  std::size_t stopped = 0, judged_to_stop = 0;
  for (const auto& trial : results.trials())
    stopped += trial.trial.status == tune::Status::Stopped ? 1 : 0;
  for (const auto& rung : results.rungs()) judged_to_stop += rung.stopped;
  CHECK(stopped > 0);
  CHECK(stopped == judged_to_stop);
  std::ostringstream text;
  text << results.best();
  CHECK(text.str().starts_with("trial "));
  CHECK(text.str().find(" with lr=") != std::string::npos);
}

TEST_CASE("the same seed gives the same search", "[tune][run]") {
  const auto search = [](std::uint64_t seed) {
    return tune::run<train>({.space = {{"lr", tune::uniform(0, 1)}},
                             .trials = 10,
                             .metric = "accuracy",
                             .mode = tune::Max,
                             .scheduler = tune::asha({.max_t = 9, .eta = 3}),
                             .seed = seed,
                             .show = tune::Show::None,
                             .in_process = true});
  };
  const auto one = search(1), same = search(1), other = search(2);
  for (std::size_t trial = 0; trial < 10; ++trial) {
    CHECK(one.trials()[trial].config.lr == same.trials()[trial].config.lr);
    CHECK(one.trials()[trial].trial.reason == same.trials()[trial].trial.reason);
    CHECK(one.trials()[trial].config.lr != other.trials()[trial].config.lr);
  }
}

TEST_CASE(
    "a grid says itself how many trials there are, and other fields keep the program's values",
    "[tune][run]") {
  const auto results = tune::run<train>(
      {.space = {{"batch", tune::grid({1, 2, 3})}, {&Config::lr, tune::grid({0.1, 0.2})}},
       .metric = "accuracy",
       .mode = tune::Max,
       .config = {.steps = 2},
       .show = tune::Show::None,
       .in_process = true});
  REQUIRE(results.trials().size() == 6);
  CHECK(results.trials()[1].config.batch == 2);
  for (const auto& trial : results.trials()) CHECK(trial.trial.t == 2);
}

TEST_CASE("a trial that throws is errored with its text, and the others go on", "[tune][run]") {
  const auto results =
      tune::run<fails_on_large_batches>({.space = {{"batch", tune::grid({32, 64, 128})}},
                                         .metric = "accuracy",
                                         .mode = tune::Max,
                                         .max_failures = 1,
                                         .show = tune::Show::None,
                                         .in_process = true});
  CHECK(results.best().config.batch == 64);
  CHECK(results.trials()[2].trial.status == tune::Status::Errored);
  CHECK(results.trials()[2].trial.failures == 2);
  CHECK(results.trials()[2].trial.error.find("batch too large") != std::string::npos);
}

TEST_CASE("a function that ignores Stop is thrown out of its next report", "[tune][run]") {
  const auto results = tune::run<deaf>({.trials = 1,
                                        .metric = "accuracy",
                                        .stop = {.reports = 3},
                                        .show = tune::Show::None,
                                        .in_process = true});
  CHECK(results.best().trial.t == 3);
  CHECK(results.best().trial.status == tune::Status::Terminated);
}

TEST_CASE("Ctrl-C keeps the results so far", "[tune][run]") {
  tune::TemporaryFolder folder;
  const auto results = tune::run<interrupts_itself>({.space = {{"lr", tune::uniform(0, 1)}},
                                                     .trials = 5,
                                                     .metric = "accuracy",
                                                     .storage = folder.path(),
                                                     .show = tune::Show::None,
                                                     .in_process = true});
  CHECK(results.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  CHECK(results.signal() == SIGINT);
  CHECK(results.best().trial.status == tune::Status::Stopped);
  CHECK(results.best().trial.reason == "the run ended: ended by the user (SIGINT)");
  CHECK(results.summary().find("ended early: ended by the user (SIGINT)") != std::string::npos);
  CHECK(std::filesystem::exists(results.folder() / "summary.json"));
}

TEST_CASE("an outcome has the signal that ended its run", "[tune][run]") {
  const tune::Options<Config> options{.space = {{"lr", tune::uniform(0, 1)}},
                                      .trials = 2,
                                      .metric = "accuracy",
                                      .config = {.steps = 2},
                                      .show = tune::Show::None,
                                      .in_process = true};
  const auto with = [&](auto run) {
    return tune::detail::search_here(tune::detail::plan_of(options), run);
  };
  const auto config_of = [&](const tune::Configuration&) { return options.config; };
  const auto interrupted = with([&](const auto& work, auto& attempt) {
    tune::detail::run_here<interrupts_itself>(config_of, work, attempt);
  });
  CHECK(interrupted.signal == SIGINT);
  tune::clear_interrupt();
  CHECK_FALSE(interrupted.has_cluster_ended);
  const auto whole = with([&](const auto& work, auto& attempt) {
    tune::detail::run_here<train>(config_of, work, attempt);
  });
  CHECK(whole.ended_early.empty());
  CHECK_FALSE(whole.signal);
}

TEST_CASE("a storage that can not be is refused by its option", "[tune][run]") {
  tune::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  CHECK_THROWS_WITH(tune::run<train>({.space = {{"lr", tune::uniform(0, 1)}},
                                      .trials = 2,
                                      .metric = "accuracy",
                                      .storage = folder.path() / "file" / "results",
                                      .show = tune::Show::None,
                                      .in_process = true}),
                    Catch::StartsWith("tune: .storage: cannot make ") &&
                        Catch::Contains("name a folder that this program may write"));
}

TEST_CASE("a run leaves its reports where it says", "[tune][run]") {
  tune::TemporaryFolder folder;
  const auto results = tune::run<train>({.space = {{"lr", tune::uniform(0, 1)}},
                                         .trials = 3,
                                         .metric = "accuracy",
                                         .mode = tune::Max,
                                         .storage = folder.path(),
                                         .config = {.steps = 4},
                                         .show = tune::Show::None,
                                         .in_process = true});
  CHECK(results.folder() == folder.path() / "run-1");
  CHECK(test::python(results.folder(), R"(
import csv, json
rows = list(csv.DictReader(open('reports.csv', newline='')))
summary = json.load(open('summary.json'))
best = max(rows, key=lambda row: float(row['accuracy']))
print(len(rows), int(best['trial']) == summary['best']['trial'], float(best['accuracy']) == summary['best']['best'])
)") == "12 True True\n");
}

TEST_CASE("options that can not be are refused before anything runs", "[tune][run]") {
  CHECK_THROWS_WITH(tune::run<train>({.metric = "accuracy", .in_process = true}),
                    "tune: .trials is 0, and the space has no grid that would say how many");
  CHECK_THROWS_WITH(tune::run<train>({.trials = 1, .in_process = true}),
                    Catch::Contains("tune: .metric is empty: name what the function reports"));
  CHECK_THROWS_WITH(
      tune::run<train>(
          {.space = {{"batch", 0.5}}, .trials = 1, .metric = "accuracy", .in_process = true}),
      "field 'batch' takes an integer, not the real number 0.5; "
      "tune::integer(low, high) is a domain of integers");
}

TEST_CASE("options of the trials' gangs that no gang can have are refused before anything runs",
          "[tune][run]") {
  CHECK_THROWS_WITH(tune::run<train>({.trials = 1,
                                      .metric = "accuracy",
                                      .each = {.each = {.cpus = -2}},
                                      .show = tune::Show::None}),
                    "tune: .each.each: RankOptions::cpus must be between 0 and 10^12, not -2");
}

TEST_CASE("a search without a cluster is refused before anything runs", "[tune][run]") {
  CHECK_THROWS_WITH(
      tune::run<train>({.space = {{"batch", 128}}, .trials = 1, .metric = "accuracy"}),
      "tune: this process is in no cluster: call troupe::init first, and keep the Cluster that it "
      "returns; or set .in_process = true for a debugger");
}

TEST_CASE("where every report was nan, asking for the best says so", "[tune][run]") {
  const int steps = GENERATE(1, 3);
  const auto results = tune::run<reports_nan>({.space = {{"batch", 128}},
                                               .trials = 1,
                                               .metric = "accuracy",
                                               .config = {.steps = steps},
                                               .show = tune::Show::None,
                                               .in_process = true});
  CHECK_THROWS_WITH(results.best(),
                    "no best trial: none reported a finite 'accuracy'; trial 0 is terminated: its "
                    "last report of it, at t=1, has nan");
}

TEST_CASE("where no trial has a value, asking for the best says why", "[tune][run]") {
  const auto results = tune::run<fails_on_large_batches>({.space = {{"batch", 128}},
                                                          .trials = 1,
                                                          .metric = "accuracy",
                                                          .show = tune::Show::None,
                                                          .in_process = true});
  CHECK_THROWS_WITH(
      results.best(),
      Catch::Contains("no best trial: none reported a finite 'accuracy'; trial 0 is errored:") &&
          Catch::Contains("batch too large"));
  CHECK_THROWS_WITH(results.trials().front().value(),
                    Catch::StartsWith("trial 0 has no value: it is errored: ") &&
                        Catch::Contains("batch too large"));
}

TEST_CASE("going on needs a folder to go on in", "[tune][run]") {
  CHECK_THROWS_WITH(tune::run<train>({.trials = 1,
                                      .metric = "accuracy",
                                      .resume = true,
                                      .show = tune::Show::None,
                                      .in_process = true}),
                    Catch::Contains(".resume goes on with the last run in .storage") &&
                        Catch::Contains("name a folder"));
}

}  // namespace in_process_test
