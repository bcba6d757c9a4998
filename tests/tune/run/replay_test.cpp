#include <troupe/tune/replay.hpp>

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "support/temporary_folder.hpp"

namespace replay_test {

using namespace troupe;

namespace {

struct Config {
  double rate = 0.1;
  int steps = 12;
};

/// What is trained is the sum of the rates of all steps.
struct State {
  int step = 0;
  double sum = 0;
};

State load(const std::string& checkpoint) {
  State state;
  std::ifstream(checkpoint) >> state.step >> state.sum;
  return state;
}

void sums(tune::Context& ctx, const Config& config) {
  auto state = ctx.restore_from().empty() ? State{} : load(ctx.restore_from());
  std::filesystem::create_directories(ctx.storage());
  while (state.step < config.steps) {
    ++state.step;
    state.sum += config.rate;
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(state.step));
    std::ofstream out(checkpoint);
    out.precision(17);
    out << state.step << ' ' << state.sum << '\n';
    out.close();
    const auto verdict =
        ctx.report({{"sum", state.sum}, {"seed", static_cast<double>(ctx.seed())}}, checkpoint);
    if (verdict == Verdict::Stop) return;
  }
}

tune::Options<Config> population(const std::string& storage) {
  return {.space = {{"rate", tune::uniform(0.0, 1.0)}},
          .trials = 4,
          .metric = "sum",
          .mode = tune::Max,
          .scheduler = tune::pbt(
              {.interval = 2, .quantile = 0.5, .mutate = {{"rate", tune::uniform(0.0, 1.0)}}}),
          .storage = storage,
          .seed = 5,
          .show = tune::Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE(
    "a replay trains the schedule that a trial came to, and comes to the same in another data "
    "order",
    "[tune][replay]") {
  const tune::TemporaryFolder folder;
  const auto found = tune::run<sums>(population((folder.path() / "pbt").string()));
  const auto best = found.best().trial.id;
  const auto recorded = tune::recorded_schedule(found.folder(), best);
  CHECK(recorded.segments == found.schedule());
  REQUIRE(recorded.segments.size() > 1);

  // [replay]
  const auto again = tune::replay<sums>(
      found.folder(), best,
      {.storage = folder.path() / "again", .show = tune::Show::None, .in_process = true});
  // [/replay]

  CHECK(again.trials().size() == 1);
  CHECK(again.best().trial.t == 12);
  CHECK(again.best().trial.takeovers.size() == recorded.segments.size() - 1);
  CHECK(again.best().trial.last[0].value == found.best().trial.last[0].value);
  CHECK(again.best().trial.last[1].value != found.best().trial.last[1].value);
  for (std::size_t i = 0; i < recorded.segments.size(); ++i) {
    CHECK(again.schedule()[i].after_t == recorded.segments[i].after_t);
    CHECK(again.schedule()[i].config == recorded.segments[i].config);
  }
}

TEST_CASE("a replay of what is not there, or with a search of its own, is refused with the reason",
          "[tune][replay]") {
  using Catch::Contains;
  const tune::TemporaryFolder folder;
  const auto storage = (folder.path() / "pbt").string();
  CHECK_THROWS_WITH(tune::replay<sums>(folder.path() / "none", 0),
                    Contains("cannot read") && Contains("results/run-1"));
  const auto found = tune::run<sums>(population(storage));
  CHECK_THROWS_WITH(tune::replay<sums>(found.folder(), 4),
                    Contains("has 4 trials, and none of number 4"));
  CHECK_THROWS_WITH(tune::replay<sums>(found.folder(), 0, {.trials = 3}),
                    Contains("a replay has no .space"));
  std::ofstream(found.folder() / "pbt.jsonl", std::ios::app) << "{\"to\":9}\n";
  CHECK_THROWS_WITH(tune::replay<sums>(found.folder(), 0), Contains("pbt.jsonl, line "));
}

}  // namespace replay_test
