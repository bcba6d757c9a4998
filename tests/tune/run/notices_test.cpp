// What a run says beforehand, or in its summary, of options that change less than whoever gave them thinks.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace notices_test {

using namespace troupe;

namespace {

struct Config {
  double lr = 0.1;
  int batch = 32;
  int steps = 27;
};

void train(tune::Context& ctx, const Config& config) {
  for (int step = 1; step <= config.steps; ++step) {
    if (ctx.report({{"accuracy", config.lr * (1 - 1.0 / (1 + step))}}) == Verdict::Stop) break;
  }
}

void is_interrupted(tune::Context& ctx, const Config& config) {
  std::raise(SIGINT);
  train(ctx, config);
}

tune::Options<Config> options() {
  return {.space = {{"lr", tune::uniform(0, 1)}},
          .trials = 3,
          .metric = "accuracy",
          .mode = tune::Max,
          .config = {.steps = 2},
          .show = tune::Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("a run whose trials are all alike says so", "[tune][run]") {
  tune::Options<Config> options{.space = {{"batch", 2}},
                                .trials = 3,
                                .metric = "accuracy",
                                .mode = tune::Max,
                                .config = {.steps = 2},
                                .show = tune::Show::None,
                                .in_process = true};
  const auto* note = "no field of .space has more than one value: all 3 trials are alike";
  CHECK_THAT(tune::run<train>(options).summary(), Catch::Contains(note));
  options.space = {{"batch", tune::choice({1, 2})}};
  CHECK_THAT(tune::run<train>(options).summary(), !Catch::Contains(note));
}

TEST_CASE("a run that does not come to all points of its grid, or to all of its trials, says so",
          "[tune][run]") {
  tune::Options<Config> options{
      .space = {{"batch", tune::grid({1, 2, 3})}, {"lr", tune::grid({0.1, 0.2})}},
      .trials = 4,
      .metric = "accuracy",
      .mode = tune::Max,
      .config = {.steps = 2},
      .first = {{.lr = 0.2, .batch = 3}},
      .show = tune::Show::None,
      .in_process = true};
  CHECK_THAT(tune::run<train>(options).summary(),
             Catch::Contains("the grid of .space has 6 points, and .trials = 4 reaches 3 of them"));
  options.trials = 7;
  CHECK_THAT(tune::run<train>(options).summary(), !Catch::Contains("the grid of .space"));
  options.space = {{"batch", tune::integer(1, 3)}, {"lr", tune::uniform(0, 1)}};
  options.searcher = tune::repeated(tune::sobol(), 3);
  options.first.clear();
  const auto repeated = tune::run<train>(options);
  CHECK(repeated.trials().size() == 6);
  CHECK_THAT(repeated.summary(),
             Catch::Contains("the .searcher makes 6 of the 7 trials that .trials asks for"));
  options.trials = 6;
  CHECK_THAT(tune::run<train>(options).summary(), !Catch::Contains("the .searcher makes"));
}

TEST_CASE(
    "a value that no trial would have is refused, and a result that nobody learns from is said",
    "[tune][run]") {
  tune::Options<Config> options{.space = {{"lr", tune::uniform(0, 1)}},
                                .trials = 2,
                                .metric = "accuracy",
                                .mode = tune::Max,
                                .config = {.batch = 16, .steps = 2},
                                .first = {{.lr = 0.2}, {.lr = 0.3, .batch = 16}},
                                .show = tune::Show::None,
                                .in_process = true};
  CHECK(tune::run<train>(options).trials().size() == 2);
  options.first.back().batch = 64;
  CHECK_THROWS_WITH(tune::run<train>(options),
                    Catch::Contains("tune: .first[1]: field 'batch' is 64, and .space gives it no "
                                    "value") &&
                        Catch::Contains("put the field into .space, or the value into .config"));
  options.first.clear();
  options.known = {{{.lr = 0.5}, 0.9}};
  const auto* note = "the results in .known change nothing without a .searcher that learns";
  CHECK_THAT(tune::run<train>(options).summary(), Catch::Contains(note));
  options.searcher = tune::tpe();
  CHECK_THAT(tune::run<train>(options).summary(), !Catch::Contains(note));
  options.stop.reaches = std::nan("");
  CHECK_THROWS_WITH(tune::run<train>(options), Catch::Contains("stop.reaches is nan"));
}

TEST_CASE("options that change nothing beside the others are said", "[tune][run]") {
  tune::TemporaryFolder folder;
  auto given = options();
  given.samples = 2;
  given.keep_checkpoints = 1;
  const auto* samples = ".samples = 2 is how often each point of a grid is tried";
  const auto* kept = ".keep_checkpoints deletes nothing without .storage";
  CHECK_THAT(tune::run<train>(given).summary(), Catch::Contains(samples) && Catch::Contains(kept));
  given.storage = folder.path();
  given.space = {{"batch", tune::grid({1, 2, 3})}};
  given.trials = 0;
  CHECK_THAT(tune::run<train>(given).summary(),
             !Catch::Contains(".samples") && !Catch::Contains(".keep_checkpoints"));
}

TEST_CASE("trials that end before the first rung of their scheduler are said", "[tune][run]") {
  auto given = options();
  given.scheduler = tune::asha({.max_t = 27, .eta = 3, .grace = 3});
  const auto* note = "no trial came to the first rung, at t=3";
  CHECK_THAT(tune::run<train>(given).summary(), Catch::Contains(note));
  given.stop.reaches = 0;
  CHECK_THAT(tune::run<train>(given).summary(), !Catch::Contains(note));
  given.stop.reaches = {};
  given.config.steps = 3;
  CHECK_THAT(tune::run<train>(given).summary(), !Catch::Contains(note));
}

TEST_CASE("a run that was cut short says how to go on with it, beside other runs too",
          "[tune][run][interrupt]") {
  tune::TemporaryFolder folder;
  auto given = options();
  given.storage = folder.path();
  const auto interrupted = [&] {
    const auto results = tune::run<is_interrupted>(given);
    tune::clear_interrupt();
    CHECK(results.ended_early() == "ended by the user (SIGINT)");
    return results;
  };
  CHECK_THAT(interrupted().summary(),
             Catch::Contains("to go on with it: the same program with .resume = true"));
  given.seed = 1;  // another search
  const auto second = interrupted();
  CHECK_THAT(second.summary(), Catch::Contains("to go on with it: tune::resume on that folder;") &&
                                   Catch::Contains("several runs in " + folder.path().string()));
  CHECK(tune::resume<train>(second.folder(), given).trials().size() == 3);
  given.storage = folder.path() / "own";
  CHECK_THAT(interrupted().summary(), Catch::Contains("the same program with .resume = true"));
  given.resume = true;
  CHECK_THAT(interrupted().summary(), Catch::Contains("the same program with .resume = true"));
}

}  // namespace notices_test
