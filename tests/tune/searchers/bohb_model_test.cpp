#include <troupe/tune/searchers/bohb_model.hpp>

#include <catch2/catch.hpp>

#include "searchers/bohb/density.hpp"
#include "support/search_runs.hpp"

namespace bohb_model_test {

using namespace troupe::tune;

namespace {

const SearchSpace kSpace{{"x", uniform(0, 1)}, {"kind", choice({"a", "b", "c"})}};

std::unique_ptr<Searcher> made(BohbModelOptions options, const SearchSpace& space,
                               std::uint64_t trials = 1000, std::uint64_t seed = 5) {
  return bohb_model(options)(
      {.space = space, .objective = {"loss", Min}, .seed = seed, .trials = trials});
}

double x_of(const Configuration& configuration) {
  return std::get<double>(configuration[0].second.value());
}

double square(double x) { return x * x; }

/// Reports of trials 0 to `trials`: at t = 1 the lowest losses are near 0.1, and at t = 3, which
/// every third trial reaches, near 0.9.
void report_two_rungs(Searcher& searcher, TrialId trials) {
  for (TrialId trial = 0; trial < trials; ++trial) {
    const double x = x_of(suggested(searcher, trial));
    searcher.on_report(trial, 1, square(x - 0.1));
    if (trial % 3 == 0) searcher.on_report(trial, 3, square(x - 0.9));
    searcher.on_end(trial, {.best = square(x - 0.9), .last = 1, .t = 3, .stopped = true});
  }
}

}  // namespace

TEST_CASE("the bandwidths of a kernel density are those of the normal reference", "[tune][bohb]") {
  const Axes axes(kSpace);
  const KernelDensity density(axes, {{0.2, 0.5}, {0.4, 0.5}, {0.6, 0.5}, {0.8, 0.5}});
  // The deviation is sqrt(0.05); four points and two fields: 4^(-1/6) = 0.793701.
  CHECK(density.bandwidths()[0] == Approx(1.06 * 0.2236068 * 0.793701).epsilon(1e-5));
  CHECK(density.bandwidths()[1] == 0.001);
}

TEST_CASE("a kernel density is the mean of the products of its kernels", "[tune][bohb]") {
  const Axes axes(kSpace);
  const KernelDensity density(axes, {{0.4, 0.5}, {0.6, 0.5}});
  const double width = density.bandwidths()[0];
  const auto kernel = [&](double from) {
    return std::exp(-square((0.5 - from) / width) / 2) / (width * std::sqrt(2 * M_PI));
  };
  const double number = (kernel(0.4) + kernel(0.6)) / 2;
  CHECK(density.log_density({0.5, 0.5}) == Approx(std::log(number * 0.999)));
  CHECK(density.log_density({0.5, 1.0 / 6}) == Approx(std::log(number * 0.0005)));
}

TEST_CASE("what a kernel density draws lies near its points and in the space", "[tune][bohb]") {
  const Axes axes(kSpace);
  const KernelDensity density(axes, {{0.95, 0.5}, {0.97, 0.5}, {0.99, 0.5}});
  Random random(1);
  int others = 0;
  for (int i = 0; i < 300; ++i) {
    const auto x = density.draw(random, 3);
    REQUIRE((x[0] > 0.7 && x[0] <= 1));
    others += x[1] != 0.5;
  }
  CHECK(others < 10);
}

TEST_CASE("BOHB's model is that of the highest rung with enough values", "[tune][bohb]") {
  const auto searcher = made({}, {{"x", uniform(0, 1)}});
  report_two_rungs(*searcher, 90);
  int near_low = 0, near_high = 0;
  for (TrialId trial = 90; trial < 150; ++trial) {
    const double x = x_of(suggested(*searcher, trial));
    near_low += std::abs(x - 0.1) < 0.1;
    near_high += std::abs(x - 0.9) < 0.1;
  }
  CHECK(near_high > 30);
  CHECK(near_low < 15);
}

TEST_CASE("BOHB's model learns from the first rung before a second has enough values",
          "[tune][bohb]") {
  const auto searcher = made({.random = 0}, {{"x", uniform(0, 1)}});
  for (TrialId trial = 0; trial < 60; ++trial) {
    const double x = x_of(suggested(*searcher, trial));
    searcher->on_report(trial, 1, square(x - 0.1));
    if (trial % 20 == 0) searcher->on_report(trial, 3, square(x - 0.9));
  }
  std::vector<double> distances;
  for (TrialId trial = 60; trial < 100; ++trial)
    distances.push_back(std::abs(x_of(suggested(*searcher, trial)) - 0.1));
  CHECK(median(distances) < 0.1);
}

TEST_CASE("BOHB's model takes reports of a metric that comes now and then for the rung before them",
          "[tune][bohb]") {
  const auto searcher = made({.random = 0}, {{"x", uniform(0, 1)}});
  // No two trials report at the same t: the first rung is passed at 3 to 62, and every second trial
  // reports once more, much later.
  for (TrialId trial = 0; trial < 60; ++trial) {
    const double x = (static_cast<double>(trial) + 0.5) / 60;
    searcher->give(trial, {{"x", x}});
    const auto t = static_cast<std::int64_t>(3 + trial);
    searcher->on_report(trial, t, square(x - 0.1));
    if (trial % 2 == 0) searcher->on_report(trial, 100 + t, square(x - 0.9));
  }
  const auto again = made({.random = 0}, {{"x", uniform(0, 1)}});
  again->load(searcher->save());
  std::vector<double> distances;
  for (TrialId trial = 60; trial < 100; ++trial) {
    const auto suggestion = suggested(*searcher, trial);
    CHECK(suggested(*again, trial) == suggestion);
    distances.push_back(std::abs(x_of(suggestion) - 0.9));
  }
  CHECK(median(distances) < 0.2);  // at random 0.4
}

TEST_CASE("a trial counts once in BOHB's model, with its first report at the rung or behind it",
          "[tune][bohb]") {
  const auto searcher = made({.random = 0}, {{"x", uniform(0, 1)}});
  // Two trials at any t come to no model of 2 (1 + 1) values, however often they report.
  for (TrialId trial = 0; trial < 2; ++trial) {
    suggested(*searcher, trial);
    for (std::int64_t t = 1; t < 50; ++t) searcher->on_report(trial, t, 0.5);
  }
  RandomSearcher random({{"x", uniform(0, 1)}}, 5, 1000);
  for (TrialId trial = 2; trial < 10; ++trial)
    CHECK(suggested(*searcher, trial) == suggested(random, trial));
}

TEST_CASE("a third of the trials of BOHB's model is drawn at random", "[tune][bohb]") {
  const auto searcher = made({}, {{"x", uniform(0, 1)}});
  RandomSearcher random({{"x", uniform(0, 1)}}, 5, 1000);
  report_two_rungs(*searcher, 60);
  int at_random = 0;
  for (TrialId trial = 60; trial < 360; ++trial)
    at_random += suggested(*searcher, trial) == suggested(random, trial);
  CHECK(at_random > 70);
  CHECK(at_random < 130);
}

TEST_CASE("BOHB's model finds lower losses than random search in as many trials", "[tune][bohb]") {
  const auto space = cube(5, -5, 5);
  const auto value = [](const Configuration& c) { return sphere(numbers_of(c)); };
  std::vector<double> modelled, at_random;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    modelled.push_back(lowest_so_far(bohb_model(), space, value, 150, seed).back());
    at_random.push_back(lowest_so_far(random_search(), space, value, 150, seed).back());
  }
  CAPTURE(median(modelled), median(at_random));
  CHECK(median(modelled) < median(at_random) / 2);
}

TEST_CASE("what fails or is not finite is the worst of BOHB's rung", "[tune][bohb]") {
  const auto searcher = made({.random = 0}, {{"x", uniform(0, 1)}});
  for (TrialId trial = 0; trial < 60; ++trial) {
    const double x = x_of(suggested(*searcher, trial));
    if (x > 0.6)
      searcher->on_end(trial, {.errored = true});
    else if (x > 0.5)
      searcher->on_report(trial, 1, std::nan(""));
    else
      searcher->on_report(trial, 1, 1 - x);
  }
  std::vector<double> suggestions;
  for (TrialId trial = 60; trial < 100; ++trial)
    suggestions.push_back(x_of(suggested(*searcher, trial)));
  CHECK(median(suggestions) < 0.52);
  CHECK(median(suggestions) > 0.35);
}

TEST_CASE("a saved BOHB's model suggests what the one that saved it does", "[tune][bohb]") {
  for (const TrialId until : {0, 4, 40}) {
    const auto searcher = made({}, kSpace), loaded = made({}, kSpace);
    report_two_rungs(*searcher, until);
    loaded->load(searcher->save());
    CHECK(loaded->save() == searcher->save());
    for (TrialId trial = until; trial < until + 20; ++trial) {
      const auto configuration = suggested(*searcher, trial);
      REQUIRE(suggested(*loaded, trial) == configuration);
      for (const auto& each : {searcher.get(), loaded.get()}) {
        each->on_report(trial, 1, trial % 5 == 0 ? std::nan("") : x_of(configuration));
        each->on_end(trial, {.t = 1, .errored = trial % 7 == 0});
      }
    }
  }
}

TEST_CASE("BOHB's model refuses options and states of others", "[tune][bohb]") {
  CHECK_THROWS_WITH(bohb_model({.random = 2}), Catch::Contains(".random is 2"));
  CHECK_THROWS_AS(bohb_model({.good = 0}), std::invalid_argument);
  CHECK_THROWS_AS(bohb_model({.candidates = 0}), std::invalid_argument);
  CHECK_THROWS_AS(bohb_model({.widening = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(made({}, kSpace, 0), Catch::Contains("tune::bohb_model"));
  const auto searcher = made({}, kSpace), other = made({.good = 0.2}, kSpace);
  CHECK_THROWS_WITH(other->load(searcher->save()), Catch::Contains("good"));
}

}  // namespace bohb_model_test
