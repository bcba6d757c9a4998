#include <troupe/tune/searchers/cmaes.hpp>

#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "support/search_runs.hpp"

namespace cmaes_test {

using namespace troupe::tune;

namespace {

const SearchSpace kMixed{{"lr", loguniform(1e-4, 1)}, {"layers", integer(1, 40)}, {"epochs", 7}};

std::unique_ptr<Searcher> made(CmaesOptions options, const SearchSpace& space,
                               std::uint64_t trials = 1000, std::uint64_t seed = 5) {
  return cmaes(options)(
      {.space = space, .objective = {"loss", Min}, .seed = seed, .trials = trials});
}

double sphere_of(const Configuration& configuration) { return sphere(numbers_of(configuration)); }

}  // namespace

TEST_CASE("CMA-ES converges on a sphere", "[tune][cmaes]") {
  std::vector<double> lowest;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    lowest.push_back(lowest_so_far(cmaes(), cube(5, -5, 5), sphere_of, 800, seed).back());
  CHECK(median(lowest) < 1e-8);
}

TEST_CASE("CMA-ES with sixteen trials under way wastes no result", "[tune][cmaes]") {
  std::vector<double> one_by_one, at_once;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    one_by_one.push_back(lowest_so_far(cmaes(), cube(5, -5, 5), sphere_of, 400, seed).back());
    at_once.push_back(lowest_so_far(cmaes(), cube(5, -5, 5), sphere_of, 400, seed, 16).back());
  }
  // Two generations behind all the time; without their results it would have half the generations.
  CHECK(median(at_once) < 0.02);
  CHECK(median(one_by_one) < 1e-3);
}

TEST_CASE("CMA-ES searches for the highest value where the run does", "[tune][cmaes]") {
  const auto searcher =
      cmaes()({.space = cube(2, 0, 1), .objective = {"accuracy", Max}, .seed = 1, .trials = 300});
  double highest = -1;
  for (TrialId trial = 0; trial < 300; ++trial) {
    const auto x = numbers_of(suggested(*searcher, trial));
    const double value = 1 - (x[0] - 0.8) * (x[0] - 0.8) - (x[1] - 0.1) * (x[1] - 0.1);
    highest = std::max(highest, value);
    end_with(*searcher, trial, value);
  }
  CHECK(highest > 1 - 1e-8);
}

TEST_CASE("CMA-ES suggests integers as integers and constants as they are", "[tune][cmaes]") {
  const auto searcher = made({}, kMixed);
  std::set<std::int64_t> layers;
  for (TrialId trial = 0; trial < 200; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    REQUIRE(configuration.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(kMixed[i].domain.contains(configuration[i].second));
    const auto x = numbers_of(configuration);
    layers.insert(static_cast<std::int64_t>(x[1]));
    end_with(*searcher, trial, std::abs(std::log10(x[0]) + 2) + std::abs(x[1] - 33));
  }
  CHECK(layers.contains(33));
}

TEST_CASE("CMA-ES goes on trying other integers after the real fields have converged",
          "[tune][cmaes]") {
  SearchSpace space = cube(2, 0, 1);
  space.push_back({"whole", integer(0, 20)});
  const auto value = [](const Configuration& configuration) {
    const auto x = numbers_of(configuration);
    return (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.3) * (x[1] - 0.3) + std::abs(x[2] - 18);
  };
  std::vector<double> lowest;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    lowest.push_back(lowest_so_far(cmaes(), space, value, 500, seed).back());
  CHECK(median(lowest) < 1e-4);
}

TEST_CASE("CMA-ES refuses a choice by its name unless choices are to be random", "[tune][cmaes]") {
  SearchSpace space = kMixed;
  space.push_back({"optimizer", choice({"sgd", "adam"})});
  CHECK_THROWS_WITH(made({}, space),
                    Catch::Contains("'optimizer'") && Catch::Contains(".random_choices"));

  const auto searcher = made({.random_choices = true}, space);
  std::set<std::string> optimizers;
  for (TrialId trial = 0; trial < 20; ++trial)
    optimizers.insert(to_string(suggested(*searcher, trial).back().second));
  CHECK(optimizers.size() == 2);
}

TEST_CASE("CMA-ES refuses options and spaces that it has no use for", "[tune][cmaes]") {
  CHECK_THROWS_WITH(cmaes({.sigma = 0}), Catch::Contains(".sigma is 0"));
  CHECK_THROWS_AS(cmaes({.sigma = 2}), std::invalid_argument);
  CHECK_THROWS_AS(cmaes({.population = 1}), std::invalid_argument);
  CHECK_THROWS_WITH(made({}, {{"epochs", 7}}), Catch::Contains("no number"));
  CHECK_THROWS_AS(made({.random_choices = true}, {{"a", choice({1, 2})}}), std::invalid_argument);
  CHECK_THROWS_WITH(made({}, kMixed, 0), Catch::Contains("tune::cmaes"));
}

TEST_CASE("CMA-ES ends with its trials", "[tune][cmaes]") {
  const auto searcher = made({}, kMixed, 3);
  CHECK(searcher->size() == 3);
  suggested(*searcher, 2);
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(3)));
}

TEST_CASE("what fails or is not finite is the worst of a generation of CMA-ES", "[tune][cmaes]") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> lowest;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto searcher = made({}, cube(2, 0, 1), 400, seed);
    lowest.push_back(1);
    for (TrialId trial = 0; trial < 400; ++trial) {
      const auto x = numbers_of(suggested(*searcher, trial));
      if (x[0] > 0.4) {
        searcher->on_end(trial, {.best = -1, .last = -1, .t = 1, .errored = true});
        continue;
      }
      const double value = (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.3) * (x[1] - 0.3);
      end_with(*searcher, trial, x[1] > 0.8 ? nan : value);
      if (x[1] <= 0.8) lowest.back() = std::min(lowest.back(), value);
    }
  }
  CHECK(median(lowest) < 1e-6);
}

TEST_CASE("generations of failures alone leave the distribution of CMA-ES as it was",
          "[tune][cmaes]") {
  const auto searcher = made({}, cube(2, 0, 1)), untouched = made({}, cube(2, 0, 1));
  for (TrialId trial = 0; trial < 60; ++trial) {
    CHECK(suggested(*searcher, trial) == suggested(*untouched, trial));
    searcher->on_end(trial, {.errored = true});
  }
}

TEST_CASE("a trial that was stopped early counts with its best report", "[tune][cmaes]") {
  const auto stopped = made({}, cube(2, 0, 1)), finished = made({}, cube(2, 0, 1));
  for (TrialId trial = 0; trial < 60; ++trial) {
    const auto configuration = suggested(*stopped, trial);
    REQUIRE(configuration == suggested(*finished, trial));
    const double value = sphere_of(configuration);
    stopped->on_end(trial, {.best = value, .last = value + 1, .t = 3, .stopped = true});
    end_with(*finished, trial, value);
  }
}

TEST_CASE("a converged CMA-ES begins again elsewhere, with twice the population", "[tune][cmaes]") {
  const SearchSpace space = cube(2, -5.12, 5.12);
  const auto value = [](const Configuration& c) { return rastrigin(numbers_of(c)); };
  std::vector<double> with, without;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    with.push_back(lowest_so_far(cmaes(), space, value, 3000, seed).back());
    without.push_back(lowest_so_far(cmaes({.restart = false}), space, value, 3000, seed).back());
  }
  CHECK(median(with) < 1e-6);
  CHECK(median(with) <= median(without));
}

TEST_CASE("CMA-ES that may not begin again stays where it has converged", "[tune][cmaes]") {
  SearchSpace space = cube(2, -1, 1);
  space.push_back({"whole", integer(0, 9)});
  for (const double scale : {0.0, 1.0}) {
    const auto searcher = made({.restart = false}, space, 6000);
    std::vector<double> last;
    for (TrialId trial = 0; trial < 6000; ++trial) {
      last = numbers_of(suggested(*searcher, trial));
      REQUIRE(std::isfinite(last[0] + last[1]));
      end_with(*searcher, trial, scale * sphere(last));
    }
    if (scale > 0) CHECK(std::hypot(last[0], last[1]) < 1e-9);
  }
}

TEST_CASE("a saved CMA-ES suggests what the one that saved it does", "[tune][cmaes]") {
  SearchSpace space = kMixed;
  space.push_back({"optimizer", choice({"sgd", "adam"})});
  const CmaesOptions options{.random_choices = true};
  const auto value = [](const Configuration& configuration) {
    return std::abs(std::log(std::get<double>(configuration[0].second.value())) + 3);
  };
  for (const TrialId until : {0, 5, 37, 150}) {
    const auto searcher = made(options, space), loaded = made(options, space);
    std::vector<double> values;
    for (TrialId trial = 0; trial < until; ++trial) {
      values.push_back(value(suggested(*searcher, trial)));
      if (trial >= 3) end_with(*searcher, trial - 3, values[trial - 3]);
    }
    loaded->load(searcher->save());
    CHECK(loaded->save() == searcher->save());
    for (TrialId trial = until; trial < until + 60; ++trial) {
      const auto configuration = suggested(*searcher, trial);
      REQUIRE(suggested(*loaded, trial) == configuration);
      for (const auto& each : {searcher.get(), loaded.get()})
        end_with(*each, trial, trial % 7 == 0 ? std::nan("") : value(configuration));
    }
  }
}

TEST_CASE("CMA-ES refuses the state of another search", "[tune][cmaes]") {
  const auto searcher = made({}, kMixed), other_seed = made({}, kMixed, 1000, 6),
             other_options = made({.sigma = 0.3}, kMixed);
  CHECK_THROWS_AS(other_seed->load(searcher->save()), std::invalid_argument);
  CHECK_THROWS_WITH(other_options->load(searcher->save()), Catch::Contains("sigma"));
  CHECK_THROWS_AS(searcher->load("{}"), std::invalid_argument);
  auto broken = searcher->save();
  broken.replace(broken.find("\"mean\""), 6, "\"maen\"");
  CHECK_THROWS_AS(searcher->load(broken), std::invalid_argument);
}

}  // namespace cmaes_test
