#include <troupe/tune/searchers/gaussian_process.hpp>

#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "support/search_runs.hpp"

namespace gaussian_process_test {

using namespace troupe::tune;

namespace {

const SearchSpace kMixed{{"lr", loguniform(1e-4, 1)},
                         {"layers", integer(1, 6)},
                         {"width", integer(8, 512)},
                         {"optimizer", choice({"sgd", "adam", "rmsprop"})},
                         {"epochs", 7}};

std::unique_ptr<Searcher> made(GaussianProcessOptions options, const SearchSpace& space,
                               std::uint64_t trials = 1000, std::uint64_t seed = 5) {
  return gaussian_process(options)(
      {.space = space, .objective = {"loss", Min}, .seed = seed, .trials = trials});
}

double mixed_loss(const Configuration& configuration) {
  const double lr = std::log10(std::get<double>(configuration[0].second.value()));
  const auto layers = static_cast<double>(std::get<std::int64_t>(configuration[1].second.value()));
  const auto width = static_cast<double>(std::get<std::int64_t>(configuration[2].second.value()));
  const double optimizer = to_string(configuration[3].second) == "adam" ? 0 : 1;
  return (lr + 2) * (lr + 2) + 0.3 * std::abs(layers - 4) + std::abs(width - 100) / 200 + optimizer;
}

}  // namespace

TEST_CASE("a Gaussian process finds the lowest place of Branin in fifty trials",
          "[tune][gp][quality]") {
  const auto& function = test_functions().front();
  const auto value = [&](const Configuration& c) { return function.value(numbers_of(c)); };
  std::vector<double> regrets;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto lowest =
        lowest_so_far(gaussian_process({.candidates = 512}), function.space, value, 50, seed);
    regrets.push_back(lowest.back() - function.optimum);
  }
  CHECK(median(regrets) < 1e-3);
}

TEST_CASE("a Gaussian process finds numbers, integers and categories at once",
          "[tune][gp][quality]") {
  std::vector<double> lowest;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    lowest.push_back(
        lowest_so_far(gaussian_process({.candidates = 512}), kMixed, mixed_loss, 50, seed).back());
  CHECK(median(lowest) < 0.1);
}

TEST_CASE("a Gaussian process suggests values of the domains alone", "[tune][gp]") {
  const auto searcher = made({.startup = 5, .candidates = 64}, kMixed);
  std::set<std::string> all;
  for (TrialId trial = 0; trial < 25; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    REQUIRE(configuration.size() == kMixed.size());
    for (std::size_t i = 0; i < kMixed.size(); ++i)
      REQUIRE(kMixed[i].domain.contains(configuration[i].second));
    all.insert(to_string(configuration));
    end_with(*searcher, trial, mixed_loss(configuration));
  }
  CHECK(all.size() >= 24);
}

TEST_CASE("a Gaussian process searches for the highest value where the run does", "[tune][gp]") {
  const auto searcher = gaussian_process({.candidates = 256})(
      {.space = cube(2, 0, 1), .objective = {"accuracy", Max}, .seed = 1, .trials = 30});
  double highest = -1;
  for (TrialId trial = 0; trial < 30; ++trial) {
    const auto x = numbers_of(suggested(*searcher, trial));
    const double value = 1 - (x[0] - 0.8) * (x[0] - 0.8) - (x[1] - 0.1) * (x[1] - 0.1);
    highest = std::max(highest, value);
    end_with(*searcher, trial, value);
  }
  CHECK(highest > 0.999);
}

TEST_CASE("trials of a Gaussian process that run at once are spread", "[tune][gp]") {
  const auto searcher = made({.candidates = 256}, cube(2, -5.12, 5.12));
  for (TrialId trial = 0; trial < 12; ++trial)
    end_with(*searcher, trial, rastrigin(numbers_of(suggested(*searcher, trial))));
  std::vector<std::vector<double>> at_once;
  for (TrialId trial = 12; trial < 20; ++trial)
    at_once.push_back(numbers_of(suggested(*searcher, trial)));
  for (std::size_t i = 0; i < at_once.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      CHECK(std::hypot(at_once[i][0] - at_once[j][0], at_once[i][1] - at_once[j][1]) > 0.1);
}

TEST_CASE("a Gaussian process draws Sobol points until enough trials are over", "[tune][gp]") {
  const auto searcher = made({.startup = 4}, cube(1, 0, 1));
  std::set<int> eighths;
  for (TrialId trial = 0; trial < 8; ++trial) {
    const auto x = numbers_of(suggested(*searcher, trial));
    eighths.insert(static_cast<int>(8 * x[0]));
    if (trial < 5) searcher->on_end(trial, {.errored = true});
  }
  CHECK(eighths.size() == 8);
}

TEST_CASE("a Gaussian process goes around what fails or is not finite", "[tune][gp]") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto searcher = made({.startup = 6, .candidates = 256}, cube(2, 0, 1));
  double lowest = 1;
  std::size_t failed = 0;
  for (TrialId trial = 0; trial < 40; ++trial) {
    const auto x = numbers_of(suggested(*searcher, trial));
    if (x[0] > 0.4) {
      if (trial >= 20) ++failed;
      if (trial % 2 == 0)
        end_with(*searcher, trial, nan);
      else
        searcher->on_end(trial, {.best = -1, .last = -1, .t = 1, .errored = true});
      continue;
    }
    const double value = (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.3) * (x[1] - 0.3);
    lowest = std::min(lowest, value);
    end_with(*searcher, trial, value);
  }
  CHECK(lowest < 1e-3);
  CHECK(failed < 10);
}

TEST_CASE("a Gaussian process bears values that are all the same or huge", "[tune][gp]") {
  for (const double scale : {0.0, 1e300, 1e-300}) {
    const auto searcher = made({.startup = 3, .candidates = 64}, cube(2, 0, 1));
    for (TrialId trial = 0; trial < 10; ++trial) {
      const auto x = numbers_of(suggested(*searcher, trial));
      REQUIRE(std::isfinite(x[0] + x[1]));
      end_with(*searcher, trial, scale * x[0]);
    }
  }
}

TEST_CASE("a Gaussian process takes no more results than it is told to", "[tune][gp]") {
  const auto searcher =
      made({.startup = 3, .candidates = 64, .fitted = 10, .known = 12}, cube(2, -5, 5));
  double lowest = 100;
  for (TrialId trial = 0; trial < 60; ++trial) {
    const double value = sphere(numbers_of(suggested(*searcher, trial)));
    lowest = std::min(lowest, value);
    end_with(*searcher, trial, value);
  }
  CHECK(lowest < 0.1);
}

TEST_CASE("a saved Gaussian process suggests what the one that saved it does", "[tune][gp]") {
  const GaussianProcessOptions options{.startup = 5, .candidates = 64};
  for (const TrialId until : {0, 7, 20}) {
    const auto searcher = made(options, kMixed), loaded = made(options, kMixed);
    std::vector<double> values;
    for (TrialId trial = 0; trial < until; ++trial) {
      values.push_back(mixed_loss(suggested(*searcher, trial)));
      if (trial >= 3) end_with(*searcher, trial - 3, values[trial - 3]);
    }
    loaded->load(searcher->save());
    CHECK(loaded->save() == searcher->save());
    for (TrialId trial = until; trial < until + 10; ++trial) {
      const auto configuration = suggested(*searcher, trial);
      REQUIRE(suggested(*loaded, trial) == configuration);
      for (const auto& each : {searcher.get(), loaded.get()})
        end_with(*each, trial, trial % 7 == 0 ? std::nan("") : mixed_loss(configuration));
    }
  }
}

TEST_CASE("a Gaussian process refuses options, spaces and states of others", "[tune][gp]") {
  CHECK_THROWS_WITH(gaussian_process({.startup = 1}), Catch::Contains(".startup is 1"));
  CHECK_THROWS_AS(gaussian_process({.candidates = 0}), std::invalid_argument);
  CHECK_THROWS_AS(gaussian_process({.fitted = 5}), std::invalid_argument);
  CHECK_THROWS_AS(gaussian_process({.known = 5}), std::invalid_argument);
  CHECK_THROWS_WITH(made({}, {{"epochs", 7}}), Catch::Contains("0 fields"));
  CHECK_THROWS_WITH(made({}, kMixed, 0), Catch::Contains("tune::gaussian_process"));

  const auto searcher = made({}, kMixed), other = made({}, kMixed, 1000, 6);
  CHECK_THROWS_AS(other->load(searcher->save()), std::invalid_argument);
  CHECK_THROWS_AS(searcher->load("[]"), std::invalid_argument);
}

TEST_CASE("a Gaussian process ends with its trials", "[tune][gp]") {
  const auto searcher = made({}, kMixed, 3);
  CHECK(searcher->size() == 3);
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(3)));
}

}  // namespace gaussian_process_test
