#include "searchers/axis.hpp"

#include <cmath>
#include <map>

#include <catch2/catch.hpp>

namespace axis_test {

using namespace troupe::tune;

namespace {

double real_at(const Axis& axis, double coordinate) {
  return std::get<double>(axis.value_at(coordinate).value());
}
std::int64_t whole_at(const Axis& axis, double coordinate) {
  return std::get<std::int64_t>(axis.value_at(coordinate).value());
}

}  // namespace

TEST_CASE("a real number's coordinate is its place in its range", "[tune][axis]") {
  const Axis axis({"x", uniform(-5, 15)});
  CHECK(axis.kind() == Axis::Kind::Real);
  CHECK(real_at(axis, 0) == -5);
  CHECK(real_at(axis, 0.25) == Approx(0).margin(1e-12));
  CHECK(real_at(axis, 1) < 15);
  CHECK(real_at(axis, 7) < 15);
  CHECK(real_at(axis, -7) == -5);
  CHECK(axis.coordinate_of(10.0) == Approx(0.75));
  CHECK(axis.cell(0.3) == std::pair(0.3, 0.3));
}

TEST_CASE("a log range has its logarithms as coordinates", "[tune][axis]") {
  const Axis axis({"lr", loguniform(1e-4, 1)});
  CHECK(real_at(axis, 0.5) == Approx(1e-2));
  CHECK(axis.coordinate_of(1e-3) == Approx(0.25));
  for (int step = 0; step < 100; ++step) {
    const double at = step / 100.0;
    CHECK(axis.coordinate_of(axis.value_at(at)) == Approx(at).margin(1e-12));
  }
}

TEST_CASE("each integer has a cell of the same width", "[tune][axis]") {
  const Axis axis({"layers", integer(2, 5)});
  CHECK(axis.values() == 4);
  CHECK(whole_at(axis, 0) == 2);
  CHECK(whole_at(axis, 0.2499) == 2);
  CHECK(whole_at(axis, 0.2501) == 3);
  CHECK(whole_at(axis, 1) == 5);
  CHECK(axis.coordinate_of(4) == Approx(0.625));
  CHECK(axis.settled(0.51) == Approx(0.625));
  CHECK(axis.cell(0.51).first == Approx(0.5));
  CHECK(axis.cell(0.51).second == Approx(0.75));
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 4000; ++i) ++counts[whole_at(axis, (i + 0.5) / 4000)];
  for (std::int64_t value = 2; value <= 5; ++value) CHECK(counts[value] == 1000);
}

TEST_CASE("the integers of the widest range keep their order", "[tune][axis]") {
  using Limits = std::numeric_limits<std::int64_t>;
  const Axis axis({"x", integer(Limits::min(), Limits::max())});
  CHECK(whole_at(axis, 0) == Limits::min());
  CHECK(whole_at(axis, 1) == Limits::max());
  CHECK(axis.coordinate_of(0) == Approx(0.5));
}

TEST_CASE("each value of a choice or a grid has a cell of the same width", "[tune][axis]") {
  const auto domain = GENERATE(choice({"adam", "sgd", "lion"}), grid({"adam", "sgd", "lion"}));
  const Axis axis({"optimizer", domain});
  CHECK(axis.kind() == Axis::Kind::Category);
  CHECK(to_string(axis.value_at(0.32)) == "adam");
  CHECK(to_string(axis.value_at(0.34)) == "sgd");
  CHECK(to_string(axis.value_at(1)) == "lion");
  CHECK(axis.coordinate_of("lion") == Approx(5.0 / 6));
  CHECK(axis.category_at(axis.coordinate_of_category(1)) == 1);
}

TEST_CASE("constants and ranges of one value are not searched, and are in every configuration",
          "[tune][axis]") {
  const Axes axes({{"steps", 7},
                   {"lr", uniform(0, 1)},
                   {"width", integer(3, 3)},
                   {"kind", choice({"a", "b"})},
                   {"beta", uniform(0.5, 0.5)}});
  REQUIRE(axes.size() == 2);
  const auto configuration = axes.configuration(std::vector{0.25, 0.75}, 0, 0);
  CHECK(to_string(configuration) == "steps=7, lr=0.25, width=3, kind=b, beta=0.5");
  CHECK(axes.point(configuration) == std::vector{0.25, 0.75});
}

TEST_CASE("a value that is not in its domain has no coordinate", "[tune][axis]") {
  const Axes axes({{"lr", uniform(0, 1)}});
  CHECK_THROWS_WITH(axes.point({{"lr", 2.0}}), "field 'lr': 2 is not in uniform(0, 1)");
  CHECK_THROWS_WITH(axes.point({{"rate", 0.5}}), "field 'lr' is missing");
  CHECK_THROWS_WITH(Axis({"lr", 0.5}),
                    "field 'lr' has a single value, so that there is nothing to search");
}

TEST_CASE("each step of a range has a cell of the same width", "[tune][axis]") {
  const Axis axis({"x", uniform(0, 1, 0.25)});
  CHECK(axis.kind() == Axis::Kind::Integer);
  CHECK(axis.values() == 5);
  CHECK(axis.coordinate_of(Scalar(0.5)) == Approx(0.5));
  CHECK(axis.coordinate_of(Scalar(0.0)) == Approx(0.1));
  CHECK(axis.value_at(0.99) == Scalar(1.0));
  CHECK(axis.cell(0.5).first == Approx(0.4));
  CHECK(axis.cell(0.5).second == Approx(0.6));
  const Axis thirds({"n", integer(-4, 5, 3)});
  CHECK(thirds.values() == 4);
  CHECK(thirds.value_at(0.3) == Scalar(-1));
}

TEST_CASE("the coordinates of an ordinal are in its order", "[tune][axis]") {
  const Axis axis({"size", ordinal({"small", "medium", "large"})});
  CHECK(axis.kind() == Axis::Kind::Integer);
  CHECK(axis.is_number());
  CHECK(axis.values() == 3);
  CHECK(axis.coordinate_of(Scalar("small")) == Approx(1.0 / 6));
  CHECK(axis.coordinate_of(Scalar("large")) == Approx(5.0 / 6));
  CHECK(axis.value_at(0.4) == Scalar("medium"));
  CHECK(axis.value_at(1) == Scalar("large"));
  CHECK(axis.settled(0.4) == Approx(0.5));
  CHECK(axis.cell(0.9).first == Approx(2.0 / 3));
}

TEST_CASE("the coordinate of a normal distribution is the part of it that is lower",
          "[tune][axis]") {
  const Axis axis({"x", normal(3, 2)});
  CHECK(axis.kind() == Axis::Kind::Real);
  CHECK(axis.coordinate_of(Scalar(3.0)) == Approx(0.5));
  CHECK(axis.coordinate_of(Scalar(5.0)) == Approx(0.8413447));
  CHECK(std::get<double>(axis.value_at(0.8413447460685429).value()) == Approx(5));
  // The ends are finite, seven deviations away.
  CHECK(std::get<double>(axis.value_at(1).value()) == Approx(3 + 2 * 7.034).epsilon(1e-3));
  CHECK(std::get<double>(axis.value_at(0).value()) == Approx(3 - 2 * 7.034).epsilon(1e-3));
  const Axis rounded({"x", normal(0, 1, 0.5)});
  CHECK(rounded.value_at(0.5) == Scalar(0.0));
  CHECK(rounded.value_at(0.75) == Scalar(0.5));
}

}  // namespace axis_test
