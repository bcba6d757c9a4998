// Trials whose gangs differ in size, and that change it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include <troupe/cluster.hpp>

#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

namespace sizes_test {

using namespace troupe;

namespace {

struct Config {
  int ranks = 1;
  int steps = 2;
};

constexpr int kGrows = 40;           // the steps of a trial that goes on until it has grown
constexpr int kNeverGrew = 100'000;  // and these

/// Reports how many ranks it has; a checkpoint is the number of the step.
void counts(tune::Context& ctx, const Config& config) {
  int step = 0;
  if (!ctx.restore_from().empty()) step = std::stoi(ctx.restore_from().filename());
  bool has_reported = false;  // in this gang
  const auto is_to_grow = [&] {
    if (config.steps != kGrows) return false;
    return ctx.size() < 4 ? step < kNeverGrew : !has_reported;
  };
  while (step < config.steps || is_to_grow()) {
    has_reported = true;
    const auto checkpoint = ctx.storage() / std::to_string(++step);
    if (ctx.rank() == 0 && !ctx.storage().empty()) std::filesystem::create_directories(checkpoint);
    ctx.gang().rendezvous();
    const Metrics metrics{{"ranks", ctx.size()}, {"step", step}};
    if (ctx.report(metrics, ctx.storage().empty() ? "" : checkpoint) == Verdict::Stop) return;
  }
}

/// Reports how many GPUs rank 0 sees: those of all ranks on its node.
void uses_devices(tune::Context& ctx, const Config&) {
  const std::string visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto gpus = visible.empty() ? 0 : 1 + std::ranges::count(visible, ',');
  ctx.report({{"gpus", static_cast<double>(gpus)}});
}

}  // namespace

TEST_CASE("a trial has the CPUs and GPUs that .each asks for, for each of its ranks",
          "[tune][sizes][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 8, .gpus = 2});
  // [each]
  const auto results = tune::run<uses_devices>(
      {.space = {{"steps", tune::grid({1, 2})}},
       .metric = "gpus",
       .each = {.workers = 2, .each = {.cpus = 2, .gpus = 1}},  // a trial: 2 ranks, 4 CPUs, 2 GPUs
       .show = tune::Show::None});
  // [/each]
  REQUIRE(results.trials().size() == 2);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    CHECK(trial.best == 2);
  }
}

TEST_CASE("each trial has the gang that its configuration asks for, and one too large fails alone",
          "[tune][sizes][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = tune::run<counts>(
      {.space = {{"ranks", tune::grid({1, 2, 64, 4})}},
       .metric = "ranks",
       .mode = tune::Max,
       .sized = [](const Config& config) { return tune::Each{.workers = config.ranks}; },
       .show = tune::Show::None});
  REQUIRE(results.trials().size() == 4);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    if (config.ranks == 64) {
      CHECK(trial.status == tune::Status::Errored);
      CHECK_THAT(trial.error, Catch::Contains("hold 4 of the 64 ranks"));
      CHECK(trial.t == 0);
    } else {
      CHECK(trial.status == tune::Status::Terminated);
      CHECK(trial.best == config.ranks);
    }
  }
}

TEST_CASE("a gang whose size and labels its configuration says is where these labels are",
          "[tune][sizes][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = tune::run<counts>(
      {.space = {{"ranks", tune::grid({1, 2, 3})}},
       .metric = "ranks",
       .mode = tune::Max,
       .sized =
           [](const Config& config) {
             const auto node = std::to_string(config.ranks / 3 + 1);
             const std::string key = "troupe.node";
             return tune::Each{.workers = config.ranks, .each = {.labels = {{key, node}}}};
           },
       .show = tune::Show::None});
  REQUIRE(results.trials().size() == 3);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    if (config.ranks < 3) {
      CHECK(trial.best == config.ranks);
    } else {  // there is one node
      CHECK(trial.status == tune::Status::Errored);
      CHECK_THAT(trial.error, Catch::Contains("troupe.node=2"));
    }
  }
}

TEST_CASE("a trial grows into the workers of those that have ended", "[tune][sizes][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results =
      tune::run<counts>({.space = {{"steps", tune::grid({2, 2, 2, kGrows})}},
                         .metric = "ranks",
                         .mode = tune::Max,
                         .scheduler = tune::resource_changing(tune::fifo(), {.total = 4}),
                         .storage = folder.path(),
                         .show = tune::Show::None});
  REQUIRE(results.trials().size() == 4);
  const auto& last = results.trials().back().trial;
  INFO(last.error << last.reason << last.restart_reason);
  CHECK(last.status == tune::Status::Terminated);
  CHECK(last.t >= kGrows);
  CHECK(last.best == 4);
  CHECK(last.workers == 4);
  // Each step was made once, whatever the gang's size, and the gang never shrank.
  std::map<int, double> ranks;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    if (report.at("trial") != 3) continue;
    const auto step = static_cast<int>(tune::metric_of(report, "step"));
    CHECK(ranks.emplace(step, tune::metric_of(report, "ranks")).second);
  }
  const auto steps = static_cast<int>(ranks.size());
  REQUIRE(steps == last.t);
  CHECK(ranks[1] == 1);
  for (int step = 2; step <= steps; ++step) CHECK(ranks[step] >= ranks[step - 1]);
}

TEST_CASE("a scheduler and options that say different sizes are refused", "[tune][sizes]") {
  tune::Options<Config> options{.space = {{"steps", tune::grid({2})}},
                                .metric = "ranks",
                                .scheduler = tune::resource_changing({}, {.total = 4, .first = 2}),
                                .storage = "unused"};
  CHECK_THROWS_WITH(tune::run<counts>(options),
                    Catch::Contains("begins with 2 workers, and .each.workers is 1"));
  options.sized = [](const Config&) { return tune::Each{.workers = 2}; };
  CHECK_THROWS_WITH(tune::run<counts>(options), Catch::Contains("and so does .sized"));
}

}  // namespace sizes_test
