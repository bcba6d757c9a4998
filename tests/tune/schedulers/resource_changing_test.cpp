#include <troupe/tune/schedulers/resource_changing.hpp>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "support/recording.hpp"

namespace resource_changing_test {

using namespace troupe::tune;

namespace {

Experiment search(std::uint64_t trials, ResourceChangingOptions options,
                  const SchedulerFactory& base = fifo()) {
  ExperimentOptions all{.objective = {"loss", Min}};
  return {all, std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, trials),
          resource_changing(base, options)(all.objective, 1)};
}

Launch launched(Experiment& experiment) {
  const auto next = experiment.next(Seconds(0));
  REQUIRE(std::holds_alternative<Launch>(next));
  experiment.started(std::get<Launch>(next).trial, Seconds(0));
  return std::get<Launch>(next);
}

Decision reported(Experiment& experiment, TrialId trial, std::int64_t t,
                  const std::string& checkpoint = "some") {
  return experiment.report(trial, t, {{"loss", 1.0}}, checkpoint, Seconds(1));
}

}  // namespace

TEST_CASE("a trial grows into what others have left, at its next checkpoint",
          "[tune][resource_changing]") {
  auto experiment = search(2, {.total = 5, .first = 1, .most = 4});
  CHECK(launched(experiment).workers == 0);
  launched(experiment);
  CHECK(std::holds_alternative<Pause>(reported(experiment, 0, 1)));  // 5 / 2 is twice as many as 1
  experiment.ended(0, Seconds(2));
  auto grown = launched(experiment);
  CHECK(grown == Launch{.trial = 0,
                        .attempt = 2,
                        .config = experiment.trials()[0].config,
                        .checkpoint = "some",
                        .after_t = 1,
                        .workers = 2});
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, 2)));
  experiment.ended(1, Seconds(3));
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, 3, "")));  // it would lose that step
  const auto decision = reported(experiment, 0, 4, "later");
  REQUIRE(std::holds_alternative<Pause>(decision));
  CHECK(why_of(decision) == "grows from 2 to 4 workers, which are free: 5 for 1 trial");
  experiment.ended(0, Seconds(4));
  grown = launched(experiment);
  CHECK(grown.workers == 4);  // .most
  CHECK(grown.checkpoint == "later");
  CHECK(experiment.trials()[0].pauses == 2);
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, 5)));
}

TEST_CASE("nobody grows while a trial is to come, and by less than a factor",
          "[tune][resource_changing]") {
  auto experiment = search(3, {.total = 5, .first = 2});
  launched(experiment);
  launched(experiment);
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, 1)));  // one is to come
  experiment.ended(1, Seconds(2));
  launched(experiment);
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, 2)));  // 5 / 2 is one gang of two
  experiment.ended(2, Seconds(2));
  const auto decision = reported(experiment, 0, 3);
  CHECK(why_of(decision) ==  // a multiple of two
        "grows from 2 to 4 workers, which are free: 5 for 1 trial");
}

TEST_CASE("a trial whose larger gang cannot be had goes on in its first size, however often",
          "[tune][resource_changing]") {
  auto experiment = search(1, {.total = 64});
  launched(experiment);
  std::int64_t t = 0;
  for (int size = 64; size >= 2; size /= 2) {
    CAPTURE(size);
    CHECK(std::holds_alternative<Pause>(reported(experiment, 0, ++t)));
    experiment.ended(0, Seconds(1));
    CHECK(launched(experiment).workers == size);
    experiment.failed(0, "there is no room", Fault::System, Seconds(2));
    const auto again = launched(experiment);
    CHECK(again.workers == 0);
    CHECK(again.checkpoint == "some");
  }
  CHECK(std::holds_alternative<GoOn>(reported(experiment, 0, ++t)));
  const auto& trial = experiment.trials()[0];
  CHECK(trial.failures == 0);
  CHECK(trial.restarts == 0);
  CHECK(trial.restart_reason == "there is no room");
}

TEST_CASE("a search whose trials grow is replayed, and goes on, at any place",
          "[tune][resource_changing][journal]") {
  const auto seed = GENERATE(1u, 2u, 3u);
  const FakeLauncher::Script script{
      .capacity = 4,
      .reports = 12,
      .value =
          [](const Launch& launch, std::int64_t t) {
            return Random(launch.trial, launch.trial, "v").unit() / static_cast<double>(t);
          },
      .failure = [seed](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
        const bool fails = launch.workers > 2 && t % 5 == seed;
        return fails ? std::optional("lost") : std::nullopt;
      },
      .fault = Fault::System,
      .checkpoints = true,
      .metric = "loss"};
  const auto made = [] { return search(9, {.total = 8}, asha({.max_t = 9, .eta = 3})); };
  auto original = made();
  const auto recording = record(original, script);
  int grew = 0;
  for (const auto& trial : original.trials()) grew += trial.pauses;
  CHECK(grew > 1);
  for (std::size_t line = 0; line < recording.ends.size(); ++line) {
    CAPTURE(line);
    auto replayed = made(), loaded = made();
    replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
    loaded.load(recording.states[line]);
    apply_events(recording.journal, loaded, {}, line);
    REQUIRE(loaded.save() == recording.states.back());
  }
}

TEST_CASE("sizes that cannot be are refused with their values", "[tune][resource_changing]") {
  CHECK_THROWS_WITH(resource_changing({}, {}), Catch::Contains(".first is 1 and .total 0"));
  CHECK_THROWS_WITH(resource_changing({}, {.total = 8, .first = 4, .most = 2}),
                    Catch::Contains(".most is 2, at least .first (4)"));
  CHECK_THROWS_WITH(resource_changing({}, {.total = 8, .factor = 1}),
                    Catch::Contains(".factor is 1, more than 1"));
  const auto population = pbt({.interval = 2, .mutate = {{"lr", uniform(0, 1)}}});
  CHECK_THROWS_WITH(resource_changing(population, {.total = 8})({"loss", Min}, 1),
                    Catch::Contains("its trials keep their size"));
}

}  // namespace resource_changing_test
