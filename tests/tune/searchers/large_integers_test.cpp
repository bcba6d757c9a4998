// Integers that no double holds, in each searcher, in population-based training and in what is written of a run.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/searchers/bohb_model.hpp>
#include <troupe/tune/searchers/cmaes.hpp>
#include <troupe/tune/searchers/gaussian_process.hpp>
#include <troupe/tune/searchers/nsga2.hpp>
#include <troupe/tune/searchers/quasi_random.hpp>
#include <troupe/tune/searchers/tpe.hpp>

#include "experiment/journal.hpp"
#include "experiment/recorded.hpp"
#include "schedulers/explore.hpp"
#include "schedulers/pb2/bandit.hpp"
#include "searchers/axis.hpp"

namespace large_integers_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 60;

using Named = std::pair<std::string, SearcherFactory>;

std::vector<Named> searchers() {
  return {{"random",
           [](const SearchSetup& setup) {
             return std::make_unique<RandomSearcher>(setup.space, setup.seed, setup.trials);
           }},
          {"grid",
           [](const SearchSetup& setup) {
             return std::make_unique<GridSearcher>(setup.space, setup.seed, 1, setup.trials);
           }},
          {"sobol", sobol()},
          {"halton", halton()},
          {"tpe", tpe()},
          {"univariate tpe", tpe({.multivariate = false})},
          {"cma-es", cmaes({})},
          {"gaussian process", gaussian_process({.candidates = 64})},
          {"nsga-ii", nsga2({.population = 10})},
          {"bohb", bohb_model()}};
}

std::int64_t whole(const Configuration& configuration, const std::string& name) {
  const auto at = std::ranges::find(configuration, name, &Configuration::value_type::first);
  return std::get<std::int64_t>(at->second.value());
}

/// Tells the searcher of `trials` results that say nothing, and calls `see` with each configuration.
void search(const SearcherFactory& factory, const SearchSpace& space, std::uint64_t trials,
            const std::function<void(const Configuration&)>& see) {
  const auto searcher =
      factory({.space = space, .objective = {"loss", Min}, .seed = 3, .trials = trials});
  for (TrialId trial = 0; trial < trials; ++trial) {
    const auto configuration = std::get<Configuration>(searcher->suggest(trial));
    see(configuration);
    const double value = Random(1, trial, "loss").unit();
    searcher->on_report(trial, 1, value);
    searcher->on_end(trial, {.best = value, .last = value, .t = 1});
  }
}

}  // namespace

TEST_CASE("every searcher proposes each of eight integers far from zero", "[tune][searcher]") {
  const SearchSpace space{{"even", integer(kFar, kFar + 7)},
                          {"log", log_integer(kFar, kFar + 7)},
                          {"stepped", integer(-kFar, -kFar + 21, 3)},
                          {"x", uniform(0, 1)}};
  for (const auto& [name, factory] : searchers()) {
    CAPTURE(name);
    std::set<std::int64_t> even, log, stepped;
    search(factory, space, 150, [&](const Configuration& configuration) {
      for (std::size_t field = 0; field < space.size(); ++field)
        REQUIRE(space[field].domain.contains(configuration[field].second));
      even.insert(whole(configuration, "even"));
      log.insert(whole(configuration, "log"));
      stepped.insert(whole(configuration, "stepped"));
    });
    // CMA-ES narrows its distribution, whatever the results say.
    const std::size_t least = name == "cma-es" ? 6 : 8;
    CHECK(even.size() >= least);
    CHECK(log.size() >= least);
    CHECK(stepped.size() >= least);
  }
}

TEST_CASE("every searcher proposes the same steps far from zero as near it", "[tune][searcher]") {
  const auto steps_from = [](const SearcherFactory& factory, std::int64_t even,
                             std::int64_t stepped) {
    const SearchSpace space{{"even", integer(even, even + 7)},
                            {"stepped", integer(stepped, stepped + 21, 3)},
                            {"x", uniform(0, 1)}};
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;
    search(factory, space, 60, [&](const Configuration& configuration) {
      steps.emplace_back(whole(configuration, "even") - even,
                         whole(configuration, "stepped") - stepped);
    });
    return steps;
  };
  for (const auto& [name, factory] : searchers()) {
    CAPTURE(name);
    CHECK(steps_from(factory, kFar, -kFar) == steps_from(factory, 0, 0));
  }
}

TEST_CASE("every searcher proposes integers with all of their digits from a range beyond 2^53",
          "[tune][searcher]") {
  const SearchSpace space{{"even", integer(INT64_MIN, INT64_MAX)},
                          {"log", log_integer(kFar, INT64_MAX)}};
  for (const auto& [name, factory] : searchers()) {
    CAPTURE(name);
    int odd = 0, odd_logs = 0;
    search(factory, space, 60, [&](const Configuration& configuration) {
      odd += whole(configuration, "even") % 2 != 0 ? 1 : 0;
      odd_logs += whole(configuration, "log") % 2 != 0 ? 1 : 0;
    });
    CHECK(odd > 10);
    CHECK(odd_logs > 10);
  }
}

TEST_CASE("a coordinate brings back the integer that it is of", "[tune][axis]") {
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    const auto low = static_cast<std::int64_t>(random.next()) >> random.below(60);
    const auto span =
        static_cast<std::int64_t>(random.below(std::uint64_t{1} << 42) >> random.below(42)) + 1;
    if (low > INT64_MAX - span) continue;
    const auto at = low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(span)));
    std::vector<Domain> domains{integer(low, low + span)};
    if (low > 0) domains.push_back(log_integer(low, low + span));
    for (const auto& domain : domains) {
      CAPTURE(to_string(domain), at);
      const Axis axis({"x", domain});
      const double coordinate = axis.coordinate_of(Scalar(at));
      REQUIRE(axis.value_at(coordinate) == Scalar(at));
      REQUIRE(axis.settled(coordinate) == coordinate);
      const auto above = axis.neighbour(coordinate, /*is_above=*/true);
      REQUIRE(above);
      REQUIRE(axis.value_at(*above) == Scalar(at + 1));
      REQUIRE(axis.neighbour(*above, /*is_above=*/false) == coordinate);
    }
  }
}

TEST_CASE("a member of a population keeps the digits of its integers", "[tune][pbt]") {
  const std::vector<double> factors{1.2, 0.8};
  const auto outcomes = [&](const Scalar& value, const Domain& domain) {
    const SearchSpace mutate{{"x", domain}};
    std::set<std::int64_t> found;
    for (std::uint64_t draw = 0; draw < 100; ++draw)
      found.insert(
          whole(explored(Configuration{{"x", value}}, {mutate, 0, factors}, 7, draw), "x"));
    return found;
  };
  using Integers = std::set<std::int64_t>;
  CHECK(outcomes(kFar + 3, integer(kFar, kFar + 7)) == Integers{kFar, kFar + 7});
  CHECK(outcomes(kFar + 7, integer(kFar, kFar + 7)) == Integers{kFar, kFar + 7});
  const auto changed = outcomes(kFar + 3, integer(0, INT64_MAX));
  REQUIRE(changed.size() == 2);
  for (const auto each : changed) CHECK(each % 2 != 0);
  const SearchSpace one{{"x", integer(kFar, kFar + 7)}};
  const std::vector<double> same{1};
  CHECK(explored(Configuration{{"x", kFar + 3}}, {one, 0, same}, 7, 0)[0].second ==
        Scalar(kFar + 3));
}

TEST_CASE("a population-based bandit chooses the same steps far from zero as near it",
          "[tune][pb2]") {
  const auto steps_from = [](std::int64_t low) {
    const auto explorer =
        bandit_explorer({.interval = 1, .mutate = {{"x", integer(low, low + 7)}}}, 3);
    std::vector<std::int64_t> steps;
    Configuration config{{"x", low + 3}};
    for (std::uint64_t draw = 0; draw < 60; ++draw) {
      const auto t = static_cast<std::int64_t>(draw);
      const double score = Random(1, draw, "score").unit();
      explorer->on_judged(0, config, t + 1, score);
      config = explorer->explored(0, {config, t + 1, score}, draw);
      steps.push_back(whole(config, "x") - low);
    }
    return steps;
  };
  const auto steps = steps_from(kFar);
  CHECK(steps == steps_from(0));
  CHECK(std::set(steps.begin(), steps.end()).size() > 3);
}

TEST_CASE("a real field that would round an integer is refused", "[tune][space]") {
  struct Config {
    double x = 0;
    float single = 0;
    std::int64_t whole = 0;
  };
  CHECK_THROWS_WITH(checked<Config>({{"x", integer(kFar, kFar + 7)}}),
                    "field 'x' is a real number, which would round the integer "
                    "1152921504606846983: make it a std::int64_t");
  CHECK_THROWS_WITH(checked<Config>({{"x", integer(0, kFar)}}),
                    Catch::Contains("would round the integer 1152921504606846975"));
  CHECK_THROWS_WITH(checked<Config>({{"single", integer(0, 1 << 25)}}),
                    Catch::Contains("would round the integer 33554431"));
  CHECK_NOTHROW(checked<Config>({{"x", integer(0, std::int64_t{1} << 53)}}));
  CHECK_NOTHROW(checked<Config>({{"x", choice({kFar, 2 * kFar})}, {"single", 100'000'000}}));
  CHECK_NOTHROW(checked<Config>({{"whole", integer(INT64_MIN, INT64_MAX)}}));
  CHECK_THROWS_AS(checked<Config>({{"x", INT64_MAX}}), std::invalid_argument);
}

TEST_CASE("what is written of a run has each integer with all of its digits", "[tune][journal]") {
  const auto configuration = Configuration{{"x", kFar + 3}, {"y", INT64_MIN}};
  const Event event{.kind = Event::Kind::Launched, .config = configuration};
  CHECK_THAT(to_line(event),
             Catch::Contains("\"x\":1152921504606846979,\"y\":-9223372036854775808"));
  CHECK(event_from(to_line(event)).config == configuration);
  // What `troupe tune show` makes of a folder.
  const SearchSpace space{{"x", integer(kFar, kFar + 7)},
                          {"y", integer(INT64_MIN, INT64_MAX, 3)},
                          {"z", log_integer(kFar + 1, INT64_MAX)},
                          {"real", uniform(-0.3, 0.3, 0.1)}};
  CHECK(recorded_space(to_json(space), {}) == space);
}

}  // namespace large_integers_test
