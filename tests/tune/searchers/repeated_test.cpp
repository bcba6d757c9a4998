// Searchers that ask another one for a configuration several times, or for several at once.
#include <troupe/tune/searchers/repeated.hpp>

#include <limits>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/hyperband.hpp>
#include <troupe/tune/searchers/tpe.hpp>
#include <troupe/tune/simulate.hpp>

#include "support/search_runs.hpp"

namespace repeated_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

const SearchSpace kSpace{{"x", uniform(0, 1)}};

SearchSetup setup(std::uint64_t trials) {
  return {.space = kSpace, .objective = {"loss", Min}, .seed = 4, .trials = trials};
}

/// Remembers what it is told.
class Recorder final : public Searcher {
 public:
  explicit Recorder(std::map<TrialId, TrialEnd>& told) : told_{told} {}
  Suggestion suggest(TrialId trial) override {
    return Configuration{{"x", Scalar(static_cast<double>(trial))}};
  }
  void on_end(TrialId trial, const TrialEnd& end) override { told_[trial] = end; }
  std::string save() const override { return R"({"searcher": "recorder"})"; }
  void load(std::string_view) override {}

 private:
  std::map<TrialId, TrialEnd>& told_;
};

SearcherFactory recorder(std::map<TrialId, TrialEnd>& told) {
  return [&told](const SearchSetup&) { return std::make_unique<Recorder>(told); };
}

}  // namespace

TEST_CASE("each configuration runs so many times, and its searcher is told the mean",
          "[tune][repeated]") {
  std::map<TrialId, TrialEnd> told;
  const auto searcher = repeated(recorder(told), 3)(setup(9));
  for (TrialId trial = 0; trial < 6; ++trial) {
    const auto x = suggested(*searcher, trial).front().second;
    CHECK(x == Scalar(trial < 3 ? 0.0 : 1.0));
  }
  constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
  searcher->on_end(4, {.best = 2.0, .last = 4.0, .t = 5});
  searcher->on_end(0, {.best = 1.0, .last = 1.0, .t = 3});
  searcher->on_end(1, {.best = 2.0, .last = kNan, .t = 4, .stopped = true});
  CHECK(told.empty());
  searcher->on_end(2, {.last = kNan, .errored = true});
  REQUIRE(told.size() == 1);
  CHECK(told[0].best == 1.5);
  CHECK(told[0].last == 1.0);
  CHECK(told[0].t == 4);
  CHECK(told[0].stopped);
  CHECK_FALSE(told[0].errored);
  for (const TrialId trial : {3, 5}) searcher->on_end(trial, {.errored = true});
  CHECK(told[1].best == 2.0);
}

TEST_CASE("a repeated search goes on from its saved state", "[tune][repeated]") {
  const auto factory = repeated(tpe({.startup_trials = 2}), 2);
  const auto kept = factory(setup(41));
  CHECK(kept->size() == 40);
  for (TrialId trial = 0; trial < 40; ++trial) {
    const auto anew = factory(setup(41));
    anew->load(kept->save());
    CHECK(anew->save() == kept->save());
    const auto configuration = suggested(*kept, trial);
    CHECK(configuration == suggested(*anew, trial));
    const auto x = std::get<double>(configuration.front().second.value());
    if (trial > 0) kept->on_end(trial - 1, {.best = x, .last = x, .t = 1});
  }
  CHECK(std::holds_alternative<NoMore>(kept->suggest(40)));
  CHECK_THROWS_WITH(repeated(tpe({.startup_trials = 2}), 3)(setup(40))->load(kept->save()),
                    Catch::Contains("times is 2 there, 3 here"));
}

TEST_CASE("a batched search waits for all of a batch", "[tune][batched]") {
  std::map<TrialId, TrialEnd> told;
  const auto searcher = batched(recorder(told), 2)(setup(10));
  suggested(*searcher, 0);
  suggested(*searcher, 1);
  CHECK(std::holds_alternative<Later>(searcher->suggest(2)));
  searcher->on_end(1, {.best = 1.0});
  CHECK(told.size() == 1);
  CHECK(std::holds_alternative<Later>(searcher->suggest(2)));
  const auto anew = batched(recorder(told), 2)(setup(10));
  anew->load(searcher->save());
  for (const auto& each : {&searcher, &anew}) {
    (*each)->on_end(0, {.best = 1.0});
    CHECK(std::holds_alternative<Configuration>((*each)->suggest(2)));
  }
}

TEST_CASE("a batched search of a run ends, however many gangs there are", "[tune][batched]") {
  struct Config {
    double x = 0;
  };
  for (const std::size_t gangs : {1, 3, 50}) {
    const auto preview =
        simulate<Config>({.space = {{"x", uniform(0, 1)}},
                          .trials = 22,
                          .metric = "loss",
                          .searcher = batched({}, 5)},
                         {.curve = [](const Config& config, auto) { return config.x; },
                          .reports = 2,
                          .gangs = gangs});
    CHECK(preview.results.trials().size() == 22);
    CHECK(preview.steps == 44);
  }
}

TEST_CASE("what is given is not repeated, and takes no trials from the others",
          "[tune][repeated]") {
  struct Config {
    double x = 0;
  };
  tune::Options<Config> options{.space = {{"x", uniform(0, 1)}},
                                .trials = 30,
                                .metric = "loss",
                                .first = {{.x = 0.25}, {.x = 0.5}, {.x = 0.75}},
                                .searcher = repeated(tpe(), 3)};
  for (int i = 0; i < 60; ++i) options.known.push_back({{.x = i / 60.0}, 1.0});
  const auto preview = simulate<Config>(
      options, {.curve = [](const Config& config, auto) { return config.x; }, .reports = 1});
  const auto& trials = preview.results.trials();
  REQUIRE(trials.size() == 3 + 27);
  CHECK(trials[2].config.x == 0.75);
  for (std::size_t at = 3; at < trials.size(); at += 3) {
    CHECK(trials[at].config.x == trials[at + 1].config.x);
    CHECK(trials[at].config.x == trials[at + 2].config.x);
  }
}

TEST_CASE("a batch beside a scheduler that pauses trials is refused", "[tune][batched]") {
  struct Config {
    double x = 0;
  };
  CHECK_THROWS_WITH(
      simulate<Config>({.space = {{"x", uniform(0, 1)}},
                        .trials = 9,
                        .metric = "loss",
                        .scheduler = hyperband({.max_t = 9}),
                        .searcher = batched({}, 3)},
                       {.curve = [](const Config& config, auto) { return config.x; }}),
      Catch::Contains("this .scheduler pauses trials") && Catch::Contains("tune::batched"));
}

TEST_CASE("a run of fewer trials than repeats is refused for its searcher", "[tune][repeated]") {
  struct Config {
    double x = 0;
  };
  const auto previewed = [](tune::Options<Config> options) {
    options.space = {{"x", uniform(0, 1)}};
    options.metric = "loss";
    return simulate<Config>(
        options, {.curve = [](const Config& config, auto) { return config.x; }, .reports = 1});
  };
  const std::string refusal =
      "tune: this .searcher (tune::repeated) runs each configuration in 3 trials, and .trials is "
      "2, so that none would run: give at least as many, or repeat less often";
  CHECK_THROWS_WITH(previewed({.trials = 2, .searcher = repeated({}, 3)}), refusal);
  CHECK_THROWS_WITH(previewed({.trials = 2, .searcher = batched(repeated({}, 3), 2)}), refusal);
  CHECK_THROWS_WITH(previewed({.trials = 2, .searcher = repeated(repeated({}, 3), 2)}), refusal);
  CHECK_THROWS_WITH(
      previewed({.trials = 2, .known = {{{.x = 0.5}, 1.0}}, .searcher = repeated({}, 3)}), refusal);
  CHECK(previewed({.trials = 3, .searcher = repeated({}, 3)}).results.trials().size() == 3);
  CHECK(previewed({.trials = 2, .first = {{.x = 0.5}}, .searcher = repeated({}, 3)})
            .results.trials()
            .size() == 1);
}

TEST_CASE("repeats and batches of nothing are refused", "[tune][repeated]") {
  CHECK_THROWS_WITH(repeated({}, 0), "tune::repeated: .times is 0, at least 1");
  CHECK_THROWS_WITH(batched({}, 0), "tune::batched: .size is 0, at least 1");
}

}  // namespace repeated_test
