#include "output/html/importance.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include <troupe/tune/searcher.hpp>

namespace importance_test {

using namespace troupe::tune;

namespace {

const SearchSpace kSpace{{"x", uniform(0, 1)},
                         {"y", loguniform(1e-3, 1)},
                         {"kind", choice({"a", "b", "c"})},
                         {"constant", 1}};

/// Drawn at random; their best value is a function of the configuration.
template <class Value>
std::vector<Trial> trials_with(std::size_t count, Value value) {
  RandomSearcher random(kSpace, 1, count);
  std::vector<Trial> trials;
  for (TrialId id = 0; id < count; ++id) {
    auto config = std::get<Configuration>(random.suggest(id));
    const double best = value(config);
    trials.push_back({.id = id, .config = std::move(config), .best = best});
  }
  return trials;
}

double x_of(const Configuration& config) { return std::get<double>(config[0].second.value()); }

}  // namespace

TEST_CASE("the field that decides is the important one", "[tune][importance]") {
  const Objective lowest{"loss", Min};
  const auto by_x = importance(kSpace, lowest, trials_with(300, [](const Configuration& config) {
                                 return std::abs(x_of(config) - 0.3);
                               }));
  REQUIRE(by_x.size() == 3);
  CHECK(by_x[0].first == "x");
  CHECK(by_x[0].second > 0.85);
  CHECK(by_x[0].second + by_x[1].second + by_x[2].second == Approx(1));

  const auto by_kind =
      importance(kSpace, lowest, trials_with(300, [](const Configuration& config) {
                   const bool is_c = config[2].second == Scalar("c");
                   return (is_c ? 0 : 1) + 0.001 * std::fmod(1000 * x_of(config), 1);
                 }));
  CHECK(by_kind[0].first == "kind");
}

TEST_CASE("the best are the highest where the highest is looked for", "[tune][importance]") {
  const auto trials = trials_with(300, [](const Configuration& config) {
    // Below 0.5 all are the same; above, x decides who is best.
    return x_of(config) < 0.5 ? 0.0 : x_of(config);
  });
  CHECK(importance(kSpace, {"score", Max}, trials)[0].first == "x");
}

TEST_CASE("of few trials there is no importance", "[tune][importance]") {
  const auto trials = trials_with(9, [](const Configuration& config) { return x_of(config); });
  CHECK(importance(kSpace, {"loss", Min}, trials).empty());
  CHECK(importance({{"constant", 1}}, {"loss", Min}, {}).empty());
}

}  // namespace importance_test
