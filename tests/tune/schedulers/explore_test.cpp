#include "schedulers/explore.hpp"

#include <cmath>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "schedulers/truncation.hpp"

namespace explore_test {

using namespace troupe::tune;

namespace {

const std::vector<double> kFactors{1.2, 0.8};

/// What a value of the domain becomes, over many draws.
std::set<std::string> outcomes(const Scalar& value, const Domain& domain, double resample,
                               const std::vector<double>& factors = kFactors) {
  const SearchSpace mutate{{"x", domain}};
  std::set<std::string> found;
  for (std::uint64_t draw = 0; draw < 400; ++draw) {
    const auto config = explored(Configuration{{"x", value}}, {mutate, resample, factors}, 7, draw);
    CHECK(domain.contains(config.front().second));
    found.insert(to_string(config.front().second));
  }
  return found;
}

using Texts = std::set<std::string>;

}  // namespace

TEST_CASE("the outer quantiles are as large as Ray's", "[tune][pbt]") {
  // members, quantile, size
  const std::vector<std::tuple<std::size_t, double, std::size_t>> sizes{
      {0, .25, 0}, {1, .25, 0},  {2, .25, 1}, {3, .25, 1}, {4, .25, 1}, {5, .25, 2}, {8, .25, 2},
      {9, .25, 3}, {10, .25, 3}, {3, .5, 1},  {5, .5, 2},  {7, .5, 3},  {5, .2, 1},  {6, .2, 2},
      {10, .2, 2}, {30, .1, 3},  {10, 0, 0},  {2, .5, 1},  {4, .5, 2}};
  for (const auto& [members, quantile, size] : sizes) {
    CAPTURE(members, quantile);
    CHECK(truncation_size(members, quantile) == size);
  }
}

TEST_CASE("a choice moves to a neighbour, or is drawn anew", "[tune][pbt]") {
  const auto domain = choice({3, 4, 8, 10});
  CHECK(outcomes(4, domain, 0) == Texts{"3", "8"});
  CHECK(outcomes(3, domain, 0) == Texts{"3", "4"});
  CHECK(outcomes(10, domain, 0) == Texts{"8", "10"});
  CHECK(outcomes(7, domain, 0) == Texts{"3", "4", "8", "10"});
  CHECK(outcomes(4, domain, 1) == Texts{"3", "4", "8", "10"});
  CHECK(outcomes("adam", choice({"sgd", "adam", "lion"}), 0) == Texts{"sgd", "lion"});
}

TEST_CASE("a number of a range is multiplied by a factor, and stays inside the range",
          "[tune][pbt]") {
  CHECK(outcomes(100.0, uniform(0, 1000), 0) == Texts{"80", "120"});
  CHECK(outcomes(100.0, uniform(0, 110), 0) == Texts{"80", to_string(std::nextafter(110.0, 0.0))});
  CHECK(outcomes(100.0, loguniform(90, 1000), 0) == Texts{"90", "120"});
  CHECK(outcomes(0.0, uniform(-1, 1), 0) == Texts{"0"});
  CHECK(outcomes(-10.0, uniform(-11, 1), 0) == Texts{"-8", "-11"});
  CHECK(outcomes(100.0, uniform(0, 1000), 1).size() > 300);
}

TEST_CASE("an integer is rounded, moves by one at least, and stays inside its range",
          "[tune][pbt]") {
  CHECK(outcomes(100, integer(1, 1000), 0) == Texts{"80", "120"});
  CHECK(outcomes(7, integer(1, 1000), 0) == Texts{"6", "8"});
  CHECK(outcomes(2, integer(1, 1000), 0) == Texts{"1", "3"});
  CHECK(outcomes(1, integer(1, 1000), 0) == Texts{"1", "2"});
  CHECK(outcomes(-2, integer(-9, 9), 0) == Texts{"-3", "-1"});
  CHECK(outcomes(INT64_MAX, integer(0, INT64_MAX), 0, {2.0}) == Texts{std::to_string(INT64_MAX)});
}

TEST_CASE("a part of the changes is drawn anew, as often as the probability says", "[tune][pbt]") {
  const SearchSpace mutate{{"x", uniform(0, 1000)}};
  int anew = 0;
  for (std::uint64_t draw = 0; draw < 4000; ++draw) {
    const auto config = explored(Configuration{{"x", 100.0}}, {mutate, 0.25, kFactors}, 3, draw);
    const auto text = to_string(config.front().second);
    anew += text == "80" || text == "120" ? 0 : 1;
  }
  CHECK(anew > 900);
  CHECK(anew < 1100);
}

TEST_CASE("fields that are not mutated keep the donor's value, and one that it lacks is drawn",
          "[tune][pbt]") {
  const SearchSpace mutate{{"lr", uniform(0, 1000)}, {"decay", uniform(2, 3)}};
  const Configuration donor{{"momentum", 0.9}, {"lr", 100.0}, {"name", "net"}};
  const auto config = explored(donor, {mutate, 0, kFactors}, 1, 1);
  REQUIRE(config.size() == 4);
  CHECK(config[0] == donor[0]);
  CHECK(config[2] == donor[2]);
  CHECK(config[3].first == "decay");
  CHECK(mutate[1].domain.contains(config[3].second));
  CHECK(explored(donor, {mutate, 0, kFactors}, 1, 1) == config);
}

}  // namespace explore_test
