#include <troupe/tune/searchers/quasi_random.hpp>

#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "searchers/quasi_random/sequences.hpp"
#include "support/search_runs.hpp"

namespace quasi_random_test {

using namespace troupe::tune;

namespace {

using Points = std::vector<std::vector<double>>;

template <class Sequence>
Points points_of(Sequence sequence, std::uint64_t count) {
  Points points;
  for (std::uint64_t index = 0; index < count; ++index) points.push_back(sequence.point(index));
  return points;
}

Points random_points(std::size_t dimensions, std::uint64_t count, std::uint64_t seed) {
  Random random(seed);
  Points points(count, std::vector<double>(dimensions));
  for (auto& point : points) {
    for (auto& x : point) x = random.unit();
  }
  return points;
}

/// Warnock's formula (1972) of the L2 star discrepancy.
double discrepancy(const Points& points) {
  const auto n = static_cast<double>(points.size());
  double single = 0, pairs = 0;
  for (const auto& x : points) {
    double product = 1;
    for (const double each : x) product *= (1 - each * each) / 2;
    single += product;
    for (const auto& y : points) {
      double shared = 1;
      for (std::size_t i = 0; i < x.size(); ++i) shared *= 1 - std::max(x[i], y[i]);
      pairs += shared;
    }
  }
  const auto d = static_cast<double>(points.front().size());
  return std::sqrt(std::pow(3.0, -d) - 2 / n * single + pairs / (n * n));
}

/// How many of the points lie in each of `cells` equal parts of one coordinate.
std::vector<int> marginal(const Points& points, std::size_t dimension, std::size_t cells) {
  std::vector<int> counts(cells);
  for (const auto& point : points)
    ++counts[static_cast<std::size_t>(point[dimension] * static_cast<double>(cells))];
  return counts;
}

SearchSetup setup(SearchSpace space, std::uint64_t seed = 1, std::uint64_t trials = 64) {
  return {.space = std::move(space), .objective = {"loss", Min}, .seed = seed, .trials = trials};
}

}  // namespace

TEST_CASE("the first points of the Sobol sequence are those of Joe and Kuo", "[tune][sobol]") {
  const auto points = points_of(SobolSequence(3, std::nullopt), 8);
  CHECK(points == Points{{0, 0, 0},
                         {0.5, 0.5, 0.5},
                         {0.75, 0.25, 0.25},
                         {0.25, 0.75, 0.75},
                         {0.375, 0.375, 0.625},
                         {0.875, 0.875, 0.125},
                         {0.625, 0.125, 0.875},
                         {0.125, 0.625, 0.375}});
}

TEST_CASE("the first points of the Halton sequence are its indices mirrored", "[tune][halton]") {
  const auto points = points_of(HaltonSequence(3, std::nullopt), 6);
  const Points expected{{0, 0, 0},
                        {1 / 2., 1 / 3., 1 / 5.},
                        {1 / 4., 2 / 3., 2 / 5.},
                        {3 / 4., 1 / 9., 3 / 5.},
                        {1 / 8., 4 / 9., 4 / 5.},
                        {5 / 8., 7 / 9., 1 / 25.}};
  for (std::size_t index = 0; index < expected.size(); ++index) {
    for (std::size_t i = 0; i < 3; ++i) CHECK(points[index][i] == Approx(expected[index][i]));
  }
}

TEST_CASE("a Sobol point does not depend on which points were asked for before", "[tune][sobol]") {
  SobolSequence forwards(5, 3), backwards(5, 3);
  const auto points = points_of(forwards, 40);
  for (std::uint64_t index = 40; index-- > 0;) CHECK(backwards.point(index) == points[index]);
  CHECK(backwards.point(1'000'000'000) == forwards.point(1'000'000'000));
}

TEST_CASE("scrambled Sobol points lie one in each cell of every coordinate", "[tune][sobol]") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto points = points_of(SobolSequence(20, seed), 256);
    for (std::size_t dimension = 0; dimension < 20; ++dimension)
      CHECK(marginal(points, dimension, 256) == std::vector<int>(256, 1));
  }
}

TEST_CASE("scrambled Halton points lie evenly in every coordinate", "[tune][halton]") {
  constexpr std::size_t primes[] = {2, 3, 5, 7, 11, 13};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::size_t dimension = 0; dimension < 6; ++dimension) {
      const auto square = primes[dimension] * primes[dimension];
      const auto points = points_of(HaltonSequence(6, seed), square);
      CHECK(marginal(points, dimension, square) == std::vector<int>(square, 1));
    }
  }
}

TEST_CASE("quasi-random points are more even than random ones", "[tune][sobol][halton]") {
  for (const std::size_t dimensions : {2, 5}) {
    double sobol = 0, halton = 0, random = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      sobol += discrepancy(points_of(SobolSequence(dimensions, seed), 128));
      halton += discrepancy(points_of(HaltonSequence(dimensions, seed), 128));
      random += discrepancy(random_points(dimensions, 128, seed));
    }
    CAPTURE(dimensions, sobol, halton, random);
    CHECK(sobol < 0.6 * random);
    CHECK(halton < 0.6 * random);
  }
}

TEST_CASE("scrambling makes each point uniform over the seeds", "[tune][sobol][halton]") {
  Points sobol, halton;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    sobol.push_back(SobolSequence(3, seed).point(5));
    halton.push_back(HaltonSequence(3, seed).point(5));
  }
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    for (const auto* points : {&sobol, &halton}) {
      for (const int count : marginal(*points, dimension, 10)) CHECK(std::abs(count - 400) < 100);
    }
  }
}

TEST_CASE("integers and choices of a quasi-random search come equally often",
          "[tune][sobol][halton]") {
  const auto factory = GENERATE(sobol(), halton());
  const SearchSpace space{{"layers", integer(1, 4)},
                          {"kind", choice({"a", "b"})},
                          {"lr", loguniform(1e-4, 1)},
                          {"steps", 10}};
  const auto searcher = factory(setup(space, 7, 64));
  std::map<std::string, int> counts;
  for (TrialId trial = 0; trial < 64; ++trial) {
    for (const auto& [name, value] : suggested(*searcher, trial)) {
      const bool is_above = name == "lr" && std::get<double>(value.value()) > 1e-2;
      ++counts[name == "lr" ? (is_above ? "above" : "below") : name + to_string(value)];
    }
  }
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(64)));
  for (const auto* layers : {"layers1", "layers2", "layers3", "layers4"})
    CHECK(std::abs(counts[layers] - 16) <= 2);
  CHECK(std::abs(counts["kinda"] - 32) <= 2);
  CHECK(std::abs(counts["above"] - 32) <= 4);
  CHECK(counts["steps10"] == 64);
}

TEST_CASE("a quasi-random search is a function of its seed, and of its own state only",
          "[tune][sobol][halton]") {
  const auto factory = GENERATE(sobol(), halton());
  const auto space = cube(4, 0, 1);
  const auto one = factory(setup(space, 1)), same = factory(setup(space, 1)),
             other = factory(setup(space, 2));
  same->load(one->save());
  for (TrialId trial = 0; trial < 20; ++trial) {
    const auto configuration = suggested(*one, trial);
    end_with(*one, trial, 1.0);
    CHECK(configuration == suggested(*same, trial));
    CHECK(configuration != suggested(*other, trial));
  }
  CHECK_THROWS_WITH(other->load(one->save()), "saved by another search: seed is 1 there, 2 here");
}

TEST_CASE("a quasi-random search without a number of trials is refused", "[tune][sobol][halton]") {
  CHECK_THROWS_WITH(
      sobol()(setup(cube(1, 0, 1), 1, 0)),
      "tune: .trials is 0, and tune::sobol walks no grid that would say how many; give .trials");
  CHECK_THROWS_WITH(
      halton()(setup(cube(1, 0, 1), 1, 0)),
      "tune: .trials is 0, and tune::halton walks no grid that would say how many; give .trials");
}

TEST_CASE("a quasi-random search of too many fields is refused", "[tune][sobol][halton]") {
  CHECK_THROWS_WITH(halton()(setup(cube(1001, 0, 1))),
                    "tune::halton searches at most 1000 fields; the space has 1001");
  CHECK_THROWS_WITH(sobol()(setup(cube(3668, 0, 1))),
                    "tune::sobol searches at most 3667 fields; the space has 3668");
  CHECK_NOTHROW(sobol()(setup(cube(3667, 0, 1)))->suggest(3));
}

}  // namespace quasi_random_test
