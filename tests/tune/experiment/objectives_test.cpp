// Runs with several objectives, from their options to their files.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/look.hpp>

#include "experiment/journal.hpp"
#include "rounds.hpp"
#include "support/error_and_latency.hpp"
#include "support/population_files.hpp"
#include "support/recording.hpp"
#include "support/several_objectives.hpp"
#include "support/temporary_folder.hpp"

namespace objectives_test {

using namespace troupe;
using namespace troupe::tune;
using namespace troupe::tune::error_and_latency;

namespace {

/// Names its second metric otherwise than the run does.
void train_misspelled(tune::Context& ctx, const Config& config) {
  ctx.report({{"error", error_of(config, 1)}, {"latency_ms", config.width}});
}

/// A search that a page shows.
Results<Config> shown() {
  // [front]
  const auto results =
      tune::run<train>({.space = {{"width", tune::uniform(0.1, 1)}, {"rate", tune::uniform(0, 1)}},
                        .trials = 200,
                        .objectives = {{"error", tune::Min}, {"latency", tune::Min}},
                        .seed = 3,
                        .searcher = tune::nsga2({.population = 20}),
                        .show = tune::Show::None,
                        .in_process = true});

  for (const auto& trial : results.pareto_front()) std::cout << trial << '\n';
  // [/front]
  return results;
}

/// A search of two trials that a test reports for by hand.
Experiment by_hand(std::vector<Objective> objectives, bool of_programs = false) {
  const auto objective = objectives.front();
  if (objectives.size() == 1) objectives.clear();
  return {{.objective = objective, .objectives = objectives, .of_programs = of_programs},
          std::make_unique<RandomSearcher>(SearchSpace{{"x", uniform(0, 1)}}, 1, 2),
          fifo()(objective, 1)};
}

}  // namespace

TEST_CASE("who reports too few objectives is told how what runs can report all", "[tune][pareto]") {
  const auto notice_of = [](bool of_programs) {
    auto experiment = by_hand({{"error", Min}, {"latency", Min}}, of_programs);
    const auto trial = std::get<Launch>(experiment.next(Seconds(0))).trial;
    experiment.started(trial, Seconds(0));
    experiment.report(trial, 1, {{"error", 0.5}}, {}, Seconds(1));
    experiment.ended(trial, Seconds(2));
    REQUIRE(experiment.notices().size() == 1);
    return experiment.notices().front();
  };
  CHECK_THAT(notice_of(false), Catch::EndsWith("Report them in one ctx.report"));
  CHECK_THAT(notice_of(true),
             Catch::EndsWith(R"(in one line `troupe: {"error": 0.5, "latency": 0.5}`)"));
}

TEST_CASE("a run of several objectives returns its Pareto front, in its order", "[tune][pareto]") {
  auto with = options();
  with.space.push_back({"fails", choice({0, 1, 2})});
  const auto results = tune::run<train>(with);
  const auto& front = results.pareto_front();
  REQUIRE(front.size() > 3);
  for (std::size_t i = 0; i < front.size(); ++i) {
    const auto [error, latency] = values_of(front[i]);
    CHECK(front[i].config.fails == 0);
    CHECK(error == error_of(front[i].config, 3));
    if (i > 0)
      CHECK((values_of(front[i - 1]).first < error && values_of(front[i - 1]).second > latency));
    for (const auto& other : results.trials()) {
      if (other.trial.values.empty() || other.config.fails != 0) continue;
      const auto [its_error, its_latency] = values_of(other);
      CHECK_FALSE((its_error <= error && its_latency < latency));
      CHECK_FALSE((its_error < error && its_latency <= latency));
    }
  }
  CHECK(front.front().trial.id == results.best().trial.id);  // which goes by the first objective
  CHECK_THAT(front.front().text, Catch::Contains(": error ") && Catch::Contains(", latency ") &&
                                     Catch::Contains(" at t=3 with width="));
  CHECK_THAT(results.summary(), Catch::Contains("Pareto front: " + std::to_string(front.size()) +
                                                " of 40 trials\n    " + front.front().text + "\n"));
}

TEST_CASE("NSGA-II searches for the front of a run", "[tune][pareto][nsga2]") {
  std::ostringstream printed;
  auto* const screen = std::cout.rdbuf(printed.rdbuf());
  const auto results = shown();
  std::cout.rdbuf(screen);
  CHECK(results.pareto_front().size() > 30);
  CHECK(std::ranges::count(printed.str(), '\n') == std::ssize(results.pareto_front()));
  CHECK_THAT(printed.str(), Catch::Contains(": error ") && Catch::Contains(", latency "));
}

TEST_CASE("the front of a run with one objective is its best trial", "[tune][pareto]") {
  auto with = options();
  with.objectives.clear();
  with.metric = "error";
  const auto results = tune::run<train>(with);
  REQUIRE(results.pareto_front().size() == 1);
  CHECK(results.pareto_front()[0].trial.id == results.best().trial.id);
  CHECK(results.pareto_front()[0].text == results.best().text);
  CHECK_THAT(results.summary(), !Catch::Contains("Pareto"));
}

TEST_CASE("NSGA-II finds a larger front of a run than random search", "[tune][pareto][nsga2]") {
  const auto area = [](const Results<Config>& results) {
    std::vector<TwoValues> values;
    for (const auto& each : results.pareto_front()) values.push_back(values_of(each));
    return hypervolume(values, {12, 10});
  };
  std::vector<double> found, random;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto with = options();
    with.trials = 300;
    with.seed = seed;
    random.push_back(area(simulate<Config>(with, simulation()).results));
    with.searcher = nsga2({.population = 20});
    found.push_back(area(simulate<Config>(with, simulation()).results));
    CHECK(found.back() > random.back());
  }
  CAPTURE(median(found), median(random));
}

TEST_CASE("the files of a run hold its objectives and its front", "[tune][pareto]") {
  const TemporaryFolder folder;
  auto with = options();
  with.storage = folder.path();
  const auto results = tune::run<train>(with);
  const auto summary = summary_of(results.folder());
  std::vector<TrialId> ids;
  for (const auto& each : results.pareto_front()) ids.push_back(each.trial.id);
  CHECK(summary.at("pareto").get<std::vector<TrialId>>() == ids);
  CHECK(dump(summary.at("objectives")) ==
        R"([{"metric":"error","mode":"min"},{"metric":"latency","mode":"min"}])");
  const auto& trial = summary.at("trials").at(ids.front());
  CHECK(trial.at("values").at(0) == values_of(results.pareto_front()[0]).first);
  CHECK(trial.at("values_t") == 3);
  CHECK_THAT(content_of(results.folder() / "report.html"),
             Catch::Contains(R"("pareto":[)" + std::to_string(ids.front()) + ","));

  SECTION("and a run with one has none") {
    with.objectives.clear();
    with.metric = "error";
    const auto one = tune::run<train>(with);
    CHECK_FALSE(summary_of(one.folder()).contains("pareto"));
    CHECK_FALSE(summary_of(one.folder()).at("trials").at(0).contains("values"));
    CHECK_THAT(content_of(one.folder() / "journal.jsonl"), !Catch::Contains("objectives"));
  }
}

TEST_CASE("a run is gone on with by its own objectives alone", "[tune][pareto]") {
  const TemporaryFolder folder;
  auto with = options();
  with.storage = folder.path();
  with.searcher = nsga2({.population = 10});
  with.stop = {.all_reports = 60};
  const auto first = tune::run<train>(with);
  REQUIRE(first.trials().size() == 20);
  const auto again = tune::resume<train>(first.folder(), with);
  CHECK(again.summary().find("Pareto front") != std::string::npos);

  auto other = with;
  other.objectives[1].mode = Max;
  CHECK_THROWS_WITH(
      tune::resume<train>(first.folder(), other),
      Catch::Contains(R"(objectives is [{"metric":"error","mode":"min"},{"metric":"latency",)"
                      R"("mode":"min"}] there, [{"metric":"error","mode":"min"},{"metric":)"
                      R"("latency","mode":"max"}] here)"));
  other.objectives.clear();
  other.metric = "error";
  CHECK_THROWS_WITH(tune::resume<train>(first.folder(), other),
                    Catch::Contains("objectives is [") && Catch::Contains("] there, null here"));
}

TEST_CASE("what counts of a trial is its last report with all objectives", "[tune][pareto]") {
  auto experiment = by_hand({{"a", Min}, {"b", Max}});
  for (TrialId trial = 0; trial < 2; ++trial) {
    experiment.next(Seconds(0));
    experiment.started(trial, Seconds(0));
  }
  experiment.report(0, 1, {{"a", 2}, {"b", 5}}, {}, Seconds(1));
  experiment.report(0, 2, {{"b", 4}, {"a", 3}}, {}, Seconds(1));
  experiment.report(0, 3, {{"a", 1}}, {}, Seconds(1));
  experiment.ended(0, Seconds(2));
  const auto& trial = experiment.trials()[0];
  CHECK(trial.values == std::vector<double>{3, 4});
  CHECK(trial.values_t == 2);
  CHECK(trial.best == 1.0);
  CHECK(experiment.notices().empty());

  experiment.report(1, 1, {{"a", 2}}, {}, Seconds(3));
  experiment.ended(1, Seconds(4));
  CHECK(experiment.trials()[1].status == Status::Terminated);
  REQUIRE(experiment.notices().size() == 1);
  CHECK_THAT(experiment.notices()[0],
             Catch::Contains("none of its reports had all of 'a', 'b'; its last one has a"));
}

TEST_CASE("a run whose function names a metric otherwise says so", "[tune][pareto]") {
  const auto results = tune::run<train_misspelled>(options());
  CHECK(results.pareto_front().empty());
  CHECK(results.exit_code() == 1);
  CHECK_THAT(results.summary(), Catch::Contains("all of 'error', 'latency'; its last one has "
                                                "error, latency_ms"));
}

TEST_CASE("a journal of several objectives, cut anywhere, gives the state in which it was written",
          "[tune][pareto][journal]") {
  const SearchSpace space{{"x", uniform(0, 1)}, {"kind", choice({"a", "b"})}};
  const auto begun = [&] {
    auto setup = two_objectives(space, 25, 7);
    return Experiment({.objective = setup.objective, .seed = 7, .objectives = setup.objectives},
                      nsga2({.population = 5})(setup), fifo()(setup.objective, 7));
  };
  auto original = begun();
  FakeLauncher::Script script{.capacity = 3, .reports = 3};
  script.metrics = [](const Launch& launch, std::int64_t t) -> Metrics {
    const auto x = std::get<double>(launch.config[0].second.value());
    if (t == 3 && launch.trial % 4 == 0) return {{"a", x}};
    return {{"a", x}, {"b", 1 - x + static_cast<double>(t)}};
  };
  const auto recording = record(original, script);
  REQUIRE(recording.ends.size() > 100);
  for (std::size_t line = 0; line < recording.ends.size();
       line += troupe::test::stride(3, recording.ends.size())) {
    CAPTURE(line);
    auto replayed = begun();
    replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
  }
}

TEST_CASE("objectives that can not be are refused with what is wrong", "[tune][pareto]") {
  const auto refused = [](auto change) {
    auto with = options();
    change(with);
    CHECK_THROWS_AS(tune::run<train>(with), std::invalid_argument);
    try {
      tune::run<train>(with);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused([](auto& with) { with.metric = "error"; }) ==
        "tune: .metric is 'error', and .objectives names 2 metrics: give one of them");
  CHECK(refused([](auto& with) { with.mode = Max; }) ==
        "tune: .mode stands beside .metric; each of .objectives has a mode of its own");
  CHECK(refused([](auto& with) {
          with.objectives.push_back({"error", Max});
        }) == "tune: 'error' stands twice in .objectives");
  CHECK(refused([](auto& with) { with.objectives.push_back({}); }) ==
        "tune: one of .objectives has no metric");
  CHECK(refused([](auto& with) {
          with.known = {{{.width = 0.5}, 3}};
        }) == "tune: .known[0] has 0 values, and .objectives names 2: give .values, one for each");
  CHECK(refused([](auto& with) {
          with.objectives.pop_back();
          with.known = {{.config = {.width = 0.5}, .values = {3}}};
        }) == "tune: .known[0] has 1 value, and the run has one objective: give .value");
  CHECK_THROWS_WITH(simulate<Config>(options(), {.curve = [](const Config&, auto) { return 1.0; }}),
                    "tune::simulate: .curves is empty, and the run has 2 metrics in its objectives "
                    "and constraints: give the value of each at "
                    "report t");
  CHECK_THROWS_WITH(
      simulate<Config>(options(),
                       {.curves = [](const Config&, auto) { return std::vector<double>{1}; }}),
      "tune::simulate: .curves gave 1 value, and the run has 2 metrics in its objectives and "
      "constraints");
}

TEST_CASE("results that are known are a part of NSGA-II's first generation", "[tune][pareto]") {
  auto with = options();
  with.trials = 30;
  with.searcher = nsga2({.population = 10});
  for (int i = 0; i < 20; ++i) {
    const double width = 0.1 + i * 0.045;
    with.known.push_back({.config = {.width = width, .rate = 0.3},
                          .values = {error_of({.width = width, .rate = 0.3}, 3), width * 10}});
  }
  double near = 0;
  const auto results = simulate<Config>(with, simulation()).results;
  for (const auto& each : results.trials()) near += std::abs(each.config.rate - 0.3) / 30;
  CHECK(near < 0.1);  // random search: 0.29
}

}  // namespace objectives_test
