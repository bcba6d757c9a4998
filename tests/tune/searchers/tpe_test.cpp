#include <troupe/tune/searchers/tpe.hpp>

#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include <catch2/catch.hpp>
#include <troupe/tune/searchers/quasi_random.hpp>

#include "support/search_runs.hpp"

namespace tpe_test {

using namespace troupe::tune;

namespace {

SearchSetup setup(SearchSpace space, std::uint64_t seed = 1, std::uint64_t trials = 1000) {
  return {.space = std::move(space), .objective = {"loss", Min}, .seed = seed, .trials = trials};
}

const SearchSpace kMixed{{"lr", loguniform(1e-4, 1)},
                         {"layers", integer(1, 8)},
                         {"kind", choice({"adam", "sgd", "lion"})},
                         {"momentum", uniform(0, 1)},
                         {"steps", 10}};

double real(const Configuration& configuration, std::size_t field) {
  return std::get<double>(configuration[field].second.value());
}

/// Lowest at lr 0.01, 5 layers, lion, momentum 0.9.
double mixed_loss(const Configuration& configuration) {
  const double lr = std::log10(real(configuration, 0)) + 2;
  const auto layers =
      static_cast<double>(std::get<std::int64_t>(configuration[1].second.value())) - 5;
  const double kind = to_string(configuration[2].second) == "lion" ? 0 : 1;
  const double momentum = real(configuration, 3) - 0.9;
  return lr * lr + 0.1 * layers * layers + kind + 4 * momentum * momentum;
}

/// Ends the trial as a search with failures and a scheduler would.
void end_somehow(Searcher& searcher, TrialId trial, double loss) {
  if (trial % 7 == 3) {
    searcher.on_end(trial, {.best = loss, .last = loss, .t = 2, .errored = true});
  } else if (trial % 5 == 1) {
    searcher.on_end(trial, {.best = loss,
                            .last = loss + 0.5,
                            .t = static_cast<std::int64_t>(trial % 4) + 1,
                            .stopped = true});
  } else {
    end_with(searcher, trial, trial % 11 == 4 ? std::nan("") : loss);
  }
}

/// A searcher after so many trials of Branin that are over.
std::unique_ptr<Searcher> after(std::uint64_t trials, const TpeOptions& options,
                                const SearchSpace& space) {
  auto searcher = tpe(options)(setup(space));
  for (TrialId trial = 0; trial < trials; ++trial)
    end_with(*searcher, trial, branin(numbers_of(suggested(*searcher, trial))));
  return searcher;
}

/// The mean distance of the suggestions made at the same time to their nearest ones.
double spread(bool constant_liar) {
  const auto& space = test_functions()[0].space;
  const auto searcher = after(40, {.constant_liar = constant_liar}, space);
  std::vector<std::vector<double>> points;
  for (TrialId trial = 40; trial < 56; ++trial)
    points.push_back(numbers_of(suggested(*searcher, trial)));
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    double nearest = 1e9;
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (i != j)
        nearest =
            std::min(nearest, std::hypot(points[i][0] - points[j][0], points[i][1] - points[j][1]));
    }
    sum += nearest;
  }
  return sum / static_cast<double>(points.size());
}

}  // namespace

TEST_CASE("TPE begins with the points of a scrambled Sobol sequence", "[tune][tpe]") {
  const auto searcher = tpe({.startup_trials = 6})(setup(kMixed));
  const auto points = sobol()(setup(kMixed));
  for (TrialId trial = 0; trial < 12; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    CHECK((configuration == suggested(*points, trial)) == (trial < 6));
    end_with(*searcher, trial, mixed_loss(configuration));
  }
}

TEST_CASE("TPE begins at random in a space of more fields than a Sobol sequence has dimensions",
          "[tune][tpe]") {
  const auto space = cube(3668, 0, 1);
  const auto searcher = tpe()(setup(space));
  RandomSearcher random(space, 1, 1000);
  CHECK(suggested(*searcher, 0) == suggested(random, 0));
}

TEST_CASE("TPE's candidates and narrowing are those that its model does best with", "[tune][tpe]") {
  const auto suggested_after = [](TpeOptions options) {
    return suggested(*after(15, options, test_functions()[0].space), 15);
  };
  CHECK(suggested_after({}) == suggested_after({.candidates = 48, .narrowing = 1.1}));
  CHECK(suggested_after({.multivariate = false}) ==
        suggested_after({.candidates = 10, .multivariate = false, .narrowing = 1.25}));
}

TEST_CASE("TPE that is loaded decides like TPE that was never saved", "[tune][tpe]") {
  const bool multivariate = GENERATE(false, true);
  const bool constant_liar = GENERATE(false, true);
  const auto factory = tpe({.multivariate = multivariate, .constant_liar = constant_liar});
  const auto never_saved = factory(setup(kMixed));
  std::map<TrialId, double> running;
  for (TrialId trial = 0; trial < 80; ++trial) {
    const auto saved = factory(setup(kMixed));
    saved->load(never_saved->save());
    CHECK(saved->save() == never_saved->save());
    const auto configuration = suggested(*never_saved, trial);
    REQUIRE(configuration == suggested(*saved, trial));
    running[trial] = mixed_loss(configuration);
    if (running.size() < 4) continue;
    const auto first = running.begin();  // some end out of turn
    const auto ends = trial % 3 == 0 ? std::next(first) : first;
    end_somehow(*never_saved, ends->first, ends->second);
    running.erase(ends);
  }
}

TEST_CASE("TPE is a function of its seed", "[tune][tpe]") {
  const auto one = tpe()(setup(kMixed, 1)), same = tpe()(setup(kMixed, 1)),
             other = tpe()(setup(kMixed, 2));
  for (TrialId trial = 0; trial < 30; ++trial) {
    const auto configuration = suggested(*one, trial);
    CHECK(configuration == suggested(*same, trial));
    CHECK(configuration != suggested(*other, trial));
    for (auto* searcher : {&one, &same, &other})
      end_with(**searcher, trial, mixed_loss(configuration));
  }
}

TEST_CASE("TPE finds the best of numbers, integers and choices together", "[tune][tpe]") {
  const bool multivariate = GENERATE(false, true);
  std::vector<double> with_model, at_random;
  for (std::uint64_t seed = 0; seed < 11; ++seed) {
    const auto best = [&](const SearcherFactory& factory) {
      return lowest_so_far(factory, kMixed, mixed_loss, 100, seed).back();
    };
    with_model.push_back(best(tpe({.multivariate = multivariate})));
    at_random.push_back(best(random_search()));
  }
  CAPTURE(multivariate, with_model, at_random);
  CHECK(median(with_model) < 0.05);
  CHECK(median(with_model) < 0.3 * median(at_random));
}

TEST_CASE("TPE comes nearer to the optimum than random search", "[tune][tpe][quality]") {
  const bool multivariate = GENERATE(false, true);
  for (const auto& function : test_functions()) {
    const auto ours = median_regrets(tpe({.multivariate = multivariate}), function, 7);
    const auto random = median_regrets(random_search(), function, 7);
    CAPTURE(function.name, multivariate);
    CHECK(ours[2] < random[2]);
    CHECK(ours[3] < 0.75 * random[3]);
  }
}

TEST_CASE("TPE with eight trials under way comes nearer than random search",
          "[tune][tpe][quality]") {
  const bool multivariate = GENERATE(false, true);
  for (const auto* name : {"branin", "sphere5"}) {
    const auto& functions = test_functions();
    const auto& function = *std::ranges::find(functions, name, &TestFunction::name);
    const auto ours = median_regrets(tpe({.multivariate = multivariate}), function, 7, 8);
    const auto random = median_regrets(random_search(), function, 7, 8);
    CAPTURE(name, multivariate, ours, random);
    CHECK(ours[2] < random[2]);
    CHECK(ours[3] < 0.5 * random[3]);
  }
}

TEST_CASE("TPE searches for the highest value where that is wanted", "[tune][tpe]") {
  auto highest = setup({{"x", uniform(0, 1)}});
  highest.objective.mode = Max;
  const auto up = tpe()(highest), down = tpe()(setup({{"x", uniform(0, 1)}}));
  for (TrialId trial = 0; trial < 40; ++trial) {
    const auto configuration = suggested(*up, trial);
    CHECK(configuration == suggested(*down, trial));
    end_with(*up, trial, 3 - real(configuration, 0));
    end_with(*down, trial, real(configuration, 0) - 3);
  }
}

TEST_CASE("suggestions that TPE makes at the same time spread", "[tune][tpe]") {
  CHECK(spread(true) > 1.5 * spread(false));
}

TEST_CASE("TPE leaves what fails", "[tune][tpe]") {
  const auto searcher = tpe()(setup({{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}));
  int failed = 0;
  for (TrialId trial = 0; trial < 100; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    const double x = real(configuration, 0);
    if (x < 0.5 && trial >= 50) ++failed;
    if (x < 0.5)
      searcher->on_end(trial, {.errored = true});
    else
      end_with(*searcher, trial, trial % 2 == 0 ? 1.0 : 2.0);
  }
  CHECK(failed < 10);
}

TEST_CASE("TPE goes on where every trial fails", "[tune][tpe]") {
  const bool multivariate = GENERATE(false, true);
  const auto searcher = tpe({.multivariate = multivariate})(setup(kMixed));
  std::set<std::string> different;
  for (TrialId trial = 0; trial < 40; ++trial) {
    different.insert(to_string(suggested(*searcher, trial)));
    searcher->on_end(trial, {.last = std::nan(""), .t = 1});
  }
  CHECK(different.size() == 40);
}

TEST_CASE("TPE learns from trials that the scheduler stopped", "[tune][tpe]") {
  const auto searcher = tpe()(setup({{"x", uniform(0, 1)}}));
  double late = 0;
  for (TrialId trial = 0; trial < 60; ++trial) {
    const double x = real(suggested(*searcher, trial), 0);
    if (trial >= 40) late += std::abs(x - 0.3) / 20;
    // Who is nearer to 0.3 is stopped later.
    const auto t = static_cast<std::int64_t>(100 * (1 - std::abs(x - 0.3)));
    searcher->on_end(trial, {.best = 1.0, .last = 1.0, .t = t, .stopped = true});
  }
  CHECK(late < 0.15);  // 0.29 at random
}

TEST_CASE("TPE ends after its trials, and its constants are in every configuration",
          "[tune][tpe]") {
  const auto searcher = tpe({.startup_trials = 0})(setup({{"steps", 10}}, 1, 3));
  CHECK(searcher->size() == 3);
  for (TrialId trial = 0; trial < 3; ++trial)
    CHECK(to_string(suggested(*searcher, trial)) == "steps=10");
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(3)));
}

TEST_CASE("TPE without startup trials begins with its prior", "[tune][tpe]") {
  const bool multivariate = GENERATE(false, true);
  const auto searcher =
      tpe({.startup_trials = 0, .multivariate = multivariate})(setup(kMixed, 1, 30));
  for (TrialId trial = 0; trial < 30; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    for (std::size_t field = 0; field < kMixed.size(); ++field)
      CHECK(kMixed[field].domain.contains(configuration[field].second));
  }
}

TEST_CASE("options that TPE can not have are refused", "[tune][tpe]") {
  CHECK_THROWS_WITH(tpe({.candidates = 0}), "tune::tpe: .candidates is 0, at least 1");
  CHECK_THROWS_WITH(tpe({.gamma = 1.5}), "tune::tpe: .gamma is 1.5, above 0 and at most 1");
  CHECK_THROWS_WITH(tpe({.narrowing = 0.0}), "tune::tpe: .narrowing is 0, above 0");
  CHECK_THROWS_WITH(tpe({.most_good = 0}), "tune::tpe: .most_good is 0, at least 1");
  CHECK_THROWS_WITH(
      tpe()(setup(kMixed, 1, 0)),
      "tune: .trials is 0, and tune::tpe walks no grid that would say how many; give .trials");
}

TEST_CASE("TPE refuses a state of another search", "[tune][tpe]") {
  const auto saved = tpe()(setup(kMixed))->save();
  CHECK_THROWS_WITH(tpe()(setup(kMixed, 2))->load(saved),
                    "saved by another search: seed is 1 there, 2 here");
  CHECK_THROWS_WITH(tpe({.multivariate = false})(setup(kMixed))->load(saved),
                    "saved by another search: multivariate is true there, false here");
  CHECK_THROWS_WITH(tpe()(setup(kMixed))->load("{\"searcher\":\"random\"}"),
                    "saved by another search: searcher is \"random\" there, \"tpe\" here");
}

}  // namespace tpe_test
