// Configurations that the user wants to be tried first, and results that are known before.
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/searchers/cmaes.hpp>
#include <troupe/tune/searchers/gaussian_process.hpp>
#include <troupe/tune/searchers/tpe.hpp>
#include <troupe/tune/simulate.hpp>

#include "searchers/given.hpp"

namespace given_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

struct Config {
  double x = 0;
  float y = 0;
  int layers = 1;
  std::string kind = "a";
  double fixed = 0;
};

tune::Options<Config> options() {
  return {.space = {{"x", uniform(-1, 1)},
                    {"y", uniform(0, 1, 0.1)},
                    {"layers", log_integer(1, 64)},
                    {"kind", choice({"a", "b"})},
                    {"fixed", 0.5}},
          .trials = 12,
          .metric = "loss",
          .mode = Min};
}

Preview<Config> search(const tune::Options<Config>& options) {
  return simulate<Config>(
      options,
      {.curve = [](const Config& config, auto) { return std::abs(config.x - 0.3); }, .reports = 1});
}

}  // namespace

TEST_CASE("configurations to try first are the first trials", "[tune][given]") {
  for (const auto& searcher : {SearcherFactory(), tpe({.startup_trials = 0})}) {
    auto with = options();
    with.searcher = searcher;
    with.first = {{.x = 0.25, .y = 0.3F, .layers = 16, .kind = "b", .fixed = 99}, {.x = -1}};
    const auto results = search(with).results;
    REQUIRE(results.trials().size() == 12);
    const auto& first = results.trials()[0].config;
    CHECK(first.x == 0.25);
    CHECK(first.y == 0.3F);
    CHECK(first.layers == 16);
    CHECK(first.kind == "b");
    CHECK(first.fixed == 0.5);  // which is not searched
    CHECK(results.trials()[1].config.x == -1);
  }
}

TEST_CASE("a grid is walked behind the configurations to try first", "[tune][given]") {
  tune::Options<Config> with{.space = {{"layers", grid({1, 2, 4})}}, .metric = "loss"};
  with.first = {{.layers = 4}};
  const auto results = search(with).results;
  REQUIRE(results.trials().size() == 4);
  CHECK(results.trials()[0].config.layers == 4);
  CHECK(results.trials()[1].config.layers == 1);
  CHECK(results.trials()[3].config.layers == 4);
}

TEST_CASE("a search that learns begins with the results that are known", "[tune][given]") {
  const std::string name = GENERATE("tpe", "cma-es", "gaussian process");
  CAPTURE(name);
  tune::Options<Config> with{
      .space = {{"x", uniform(-1, 1)}, {"y", uniform(0, 1)}}, .trials = 10, .metric = "loss"};
  with.searcher = name == "tpe"      ? tpe()
                  : name == "cma-es" ? cmaes({.sigma = 0.05})
                                     : gaussian_process();
  for (int i = 0; i < 60; ++i) {
    const double x = -1 + i / 30.0;
    with.known.push_back({{.x = x}, std::abs(x - 0.3)});
  }
  with.known.push_back({{.x = 0.9}, std::numeric_limits<double>::quiet_NaN()});
  double near = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    with.seed = seed;
    auto anew = with;
    anew.known.clear();
    const auto preview = search(with);
    REQUIRE(preview.results.trials().size() == 10);
    for (const auto& each : preview.results.trials()) near += std::abs(each.config.x - 0.3);
    const auto other = search(anew);
    for (const auto& each : other.results.trials()) without += std::abs(each.config.x - 0.3);
  }
  CAPTURE(near, without);
  CHECK(near < without / 2);
}

TEST_CASE("what is given has to be in the space", "[tune][given]") {
  auto with = options();
  with.first = {{.x = 2, .layers = 1}};
  CHECK_THROWS_WITH(search(with),
                    "tune: .first[0]: field 'x' holds 2, which is not in uniform(-1, 1); give it a "
                    "value of its domain, or widen that in .space");
  with.first = {{.kind = "c"}};
  CHECK_THROWS_WITH(search(with),
                    Catch::StartsWith("tune: .first[0]: field 'kind' holds c, which is not in "
                                      "choice(a, b)"));
  with.first = {{.x = 0.5}};
  with.known = {{{.x = 0.5}, 1.0}, {{.layers = 100}, 2.0}};
  CHECK_THROWS_WITH(search(with), Catch::StartsWith("tune: .known[1]: field 'layers' holds 100, "
                                                    "which is not in log_integer(1, 64)"));
  with.known.clear();
  with.first.assign(13, {});
  CHECK_THROWS_WITH(search(with), "tune: .first has 13 configurations, and .trials is 12");
}

TEST_CASE("a search with given trials goes on from its saved state", "[tune][given]") {
  const SearchSpace space{{"x", uniform(-1, 1)}};
  const auto begin = [&](double first) {
    return GivenSearcher(tpe({.startup_trials = 2})(
                             {.space = space, .objective = {"loss", Min}, .seed = 3, .trials = 21}),
                         {{{"x", Scalar(first)}}}, {{{{"x", Scalar(0.5)}}, 0.2}}, 20);
  };
  auto never_saved = begin(0.1);
  for (TrialId trial = 0; trial < 20; ++trial) {
    auto anew = begin(0.1);
    anew.load(never_saved.save());
    const auto configuration = std::get<Configuration>(never_saved.suggest(trial));
    CHECK(configuration == std::get<Configuration>(anew.suggest(trial)));
    const auto value = std::abs(std::get<double>(configuration[0].second.value()) - 0.3);
    never_saved.on_end(trial, {.best = value, .last = value, .t = 1});
  }
  CHECK(std::holds_alternative<NoMore>(never_saved.suggest(20)));
  CHECK_THROWS_WITH(begin(0.2).load(never_saved.save()), Catch::Contains(".first and .known are"));
}

}  // namespace given_test
