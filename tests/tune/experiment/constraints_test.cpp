// Runs with several objectives and constraints, from their options to their files.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/look.hpp>

#include "support/error_and_latency.hpp"
#include "support/population_files.hpp"
#include "support/recording.hpp"
#include "support/temporary_folder.hpp"

namespace constraints_test {

using namespace troupe;
using namespace troupe::tune;
using namespace troupe::tune::error_and_latency;

TEST_CASE("a run with constraints has in its front what keeps to them",
          "[tune][pareto][constraints]") {
  const TemporaryFolder folder;
  auto with = options();
  with.constraints = {{"latency", AtMost, 5}, {"error", AtMost, 4}};
  with.searcher = nsga2({.population = 10});
  with.storage = folder.path();
  with.snapshot_after = GENERATE(0, 1);
  const auto results = tune::run<train>(with);
  std::size_t kept = 0;
  for (const auto& [config, trial, text] : results.trials()) {
    const auto [error, latency] = values_of({config, trial, text});
    const double violation = std::max(0.0, latency - 5) / 5 + std::max(0.0, error - 4) / 4;
    CHECK(trial.violation == Approx(violation));
    if (violation == 0) ++kept;
  }
  REQUIRE(kept > 3);
  REQUIRE(kept < results.trials().size());
  for (const auto& each : results.pareto_front()) CHECK(each.trial.violation == 0);
  CHECK_THAT(results.summary(), Catch::Contains("beyond the limits of .constraints: " +
                                                std::to_string(40 - kept) + " trial") &&
                                    Catch::Contains("; the nearest to them is trial "));
  const auto summary = Json::parse(content_of(results.folder() / "summary.json"));
  CHECK(summary.at("constraints").dump() ==
        R"([{"metric":"latency","bound":"at most","limit":5.0},)"
        R"({"metric":"error","bound":"at most","limit":4.0}])");

  const auto seen = tune::detail::look_at_folder(results.folder(), 100).outcome.summary;
  CHECK_THAT(
      seen, Catch::Contains(results.summary().substr(
                results.summary().find("Pareto front"),
                results.summary().find("; the nearest") - results.summary().find("Pareto front"))));

  // What another search begins with.
  const auto known = tune::load<Config>(results.folder()).known();
  REQUIRE(known.size() == 40);
  for (std::size_t i = 0; i < known.size(); ++i)
    CHECK(known[i].violation == results.trials()[i].trial.violation);
  auto more = with;
  more.trials = 50;
  const auto resumed = tune::resume<train>(results.folder(), more);
  REQUIRE(resumed.trials().size() == 50);
  for (std::size_t i = 0; i < known.size(); ++i)
    CHECK(resumed.trials()[i].trial.violation == results.trials()[i].trial.violation);
  with.constraints[1].limit = 3;
  CHECK_THROWS_WITH(tune::resume<train>(results.folder(), with),
                    Catch::Contains("constraints is [{"));
}

TEST_CASE("a run without constraints does not look at how far earlier trials exceeded some",
          "[tune][pareto][constraints]") {
  auto with = options();
  with.searcher = nsga2({.population = 10});
  for (int i = 0; i < 10; ++i)
    with.known.push_back({{.width = 0.1 + 0.09 * i}, 0, {1.0 / (1 + i), 1.0 + i}, 0.5 * i});
  const auto found = tune::run<train>(with);
  for (auto& each : with.known) each.violation = 0;
  const auto same = tune::run<train>(with);
  for (std::size_t i = 0; i < found.trials().size(); ++i)
    CHECK(found.trials()[i].trial.config == same.trials()[i].trial.config);
}

TEST_CASE("a preview has the metrics of its constraints behind those of its objectives",
          "[tune][pareto][constraints]") {
  auto with = options();
  with.constraints = {{"memory", AtMost, 0.5}, {"latency", AtMost, 8}};
  auto world = simulation();
  CHECK_THROWS_WITH(simulate<Config>(with, world), Catch::Contains("the run has 3 metrics"));
  world.curves = [](const Config& config, std::int64_t t) {
    return std::vector{error_of(config, t), config.width * 10, config.rate};
  };
  const auto results = simulate<Config>(with, world).results;
  for (const auto& [config, trial, text] : results.trials()) {
    const double violation =
        std::max(0.0, config.rate - 0.5) / 0.5 + std::max(0.0, config.width * 10 - 8) / 8;
    CHECK(trial.violation == Approx(violation));
  }
}

TEST_CASE("a run whose trials all break a constraint has no front, and says who is nearest",
          "[tune][pareto][constraints]") {
  auto with = options();
  with.constraints = {{"latency", AtLeast, 20}};  // the widest has 10
  const auto results = tune::run<train>(with);
  CHECK(results.pareto_front().empty());
  CHECK(results.exit_code() == 1);
  CHECK_THAT(results.summary(),
             Catch::Contains("Pareto front: 0 of 40 trials\n    beyond the limits of .constraints: "
                             "40 trials; the nearest to them is trial ") &&
                 Catch::Contains("; violation 0.5"));
}

TEST_CASE("a report that lacks the metric of a constraint is in no front",
          "[tune][pareto][constraints]") {
  auto with = options();
  with.constraints = {{"memory", AtMost, 8}};
  with.trials = 2;
  const auto results = tune::run<train>(with);
  CHECK(results.pareto_front().empty());
  CHECK_THAT(results.summary(),
             Catch::Contains("none of its reports had all of 'error', 'latency', 'memory'"));
}

TEST_CASE("constraints without a metric, a limit or several objectives are refused",
          "[tune][pareto][constraints]") {
  const auto refused = [](std::vector<Constraint> constraints, bool has_one_objective = false) {
    auto with = options();
    with.constraints = std::move(constraints);
    if (has_one_objective) with.objectives.pop_back();
    try {
      tune::run<train>(with);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK_THAT(refused({{"latency", AtMost, 5}}, true),
             Catch::Contains(".constraints are those of a run with several objectives"));
  CHECK_THAT(refused({{"", AtMost, 5}}), Catch::Contains("one of .constraints has no metric"));
  CHECK_THAT(refused({{"latency", AtMost, std::nan("")}}),
             Catch::Contains("the limit of 'latency' in .constraints is nan; give a finite one"));
  CHECK_THAT(refused({{"latency", AtMost, 5}, {"latency", AtMost, 4}}),
             Catch::Contains("'latency' has two limits of one kind in .constraints"));
  CHECK(refused({{"latency", AtMost, 5}, {"latency", AtLeast, 1}}) == "taken");
  CHECK_THAT(refused({{"latency", AtMost, 1}, {"latency", AtLeast, 5}}),
             Catch::Contains("no 'latency' keeps to both of its limits in .constraints"));
  auto with = options();
  with.known = {{{}, 0, {1, 2}, -1}};
  CHECK_THROWS_WITH(tune::run<train>(with), Catch::Contains(".known[0] has the violation -1"));
}

}  // namespace constraints_test
