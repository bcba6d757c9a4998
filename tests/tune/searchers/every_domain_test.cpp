// Each searcher over a space with each kind of domain.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/searchers/bohb_model.hpp>
#include <troupe/tune/searchers/cmaes.hpp>
#include <troupe/tune/searchers/gaussian_process.hpp>
#include <troupe/tune/searchers/nsga2.hpp>
#include <troupe/tune/searchers/quasi_random.hpp>
#include <troupe/tune/searchers/tpe.hpp>

namespace every_domain_test {

using namespace troupe::tune;

namespace {

const SearchSpace kEvery{{"real", uniform(-1, 1)},
                         {"stepped", uniform(0, 1, 0.1)},
                         {"log", loguniform(1e-5, 1)},
                         {"stepped_log", loguniform(0.5, 64, 0.5)},
                         {"whole", integer(-3, 3)},
                         {"stepped_whole", integer(8, 64, 8)},
                         {"whole_log", log_integer(1, 4096)},
                         {"normal", normal(2, 0.5)},
                         {"stepped_normal", normal(0, 1, 0.25)},
                         {"choice", choice({"a", "b", "c"})},
                         {"ordinal", ordinal({1, 2, 4, 8, 16})},
                         {"grid", grid({true, false})},
                         {"constant", 7}};

/// Lowest at normal 2.5 and ordinal 8.
double loss(const Configuration& configuration) {
  const auto at = [&](const char* name) {
    return std::ranges::find(configuration, name, &Configuration::value_type::first)->second;
  };
  const auto ordinal = static_cast<double>(std::get<std::int64_t>(at("ordinal").value()));
  return std::abs(std::get<double>(at("normal").value()) - 2.5) + std::abs(std::log2(ordinal) - 3);
}

}  // namespace

TEST_CASE("every searcher proposes values of every kind of domain", "[tune][searcher]") {
  const std::vector<std::pair<std::string, SearcherFactory>> searchers{
      {"sobol", sobol()},
      {"halton", halton()},
      {"tpe", tpe()},
      {"univariate tpe", tpe({.multivariate = false})},
      {"cma-es", cmaes({.random_choices = true})},
      {"gaussian process", gaussian_process({.candidates = 64})},
      {"nsga-ii", nsga2({.population = 10})},
      {"bohb", bohb_model()}};
  for (const auto& [name, factory] : searchers) {
    CAPTURE(name);
    const auto searcher =
        factory({.space = kEvery, .objective = {"loss", Min}, .seed = 5, .trials = 60});
    for (TrialId trial = 0; trial < 60; ++trial) {
      const auto suggestion = searcher->suggest(trial);
      const auto& configuration = std::get<Configuration>(suggestion);
      REQUIRE(configuration.size() == kEvery.size());
      for (std::size_t field = 0; field < kEvery.size(); ++field) {
        INFO(kEvery[field].name << " = " << to_string(configuration[field].second));
        REQUIRE(kEvery[field].domain.contains(configuration[field].second));
      }
      const auto value = loss(configuration);
      searcher->on_report(trial, 1, value);
      searcher->on_end(trial, {.best = value, .last = value, .t = 1});
    }
  }
}

TEST_CASE("TPE learns from ordinals and normal distributions", "[tune][tpe]") {
  double last = 0, first = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto searcher =
        tpe()({.space = kEvery, .objective = {"loss", Min}, .seed = seed, .trials = 100});
    for (TrialId trial = 0; trial < 100; ++trial) {
      const auto value = loss(std::get<Configuration>(searcher->suggest(trial)));
      searcher->on_end(trial, {.best = value, .last = value, .t = 1});
      if (trial < 10) first += value / 50;
      if (trial >= 80) last += value / 100;
    }
  }
  CAPTURE(first, last);
  CHECK(last < 0.6 * first);
}

}  // namespace every_domain_test
