// Ranges with a step, and integers: each value is exactly the one that people write.
#include <troupe/tune/space.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "space/decimal.hpp"
#include "space/places.hpp"

namespace steps_test {

using namespace troupe::tune;
using Catch::Matchers::Equals;

namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 60;

double real(const Scalar& scalar) { return std::get<double>(scalar.value()); }
std::int64_t whole(const Scalar& scalar) { return std::get<std::int64_t>(scalar.value()); }

/// The double that a program has where it writes that number.
double written(std::int64_t digits, int behind_point) {
  const auto text = std::to_string(digits) + "e-" + std::to_string(behind_point);
  return std::strtod(text.c_str(), nullptr);
}

bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }

std::vector<double> points_of(const Domain& domain) {
  std::vector<double> points;
  for (std::uint64_t step = 0; step <= *domain.last_step(); ++step)
    points.push_back(real(domain.at_step(step)));
  return points;
}

}  // namespace

TEST_CASE("a range with a step through zero has zero, and both its ends", "[tune][domain]") {
  const auto domain = uniform(-0.3, 0.3, 0.1);
  CHECK(points_of(domain) == std::vector{-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3});
  CHECK(domain.nearest(1e-3) == Scalar(0.0));
  CHECK(domain.contains(Scalar(0.0)));
  CHECK_FALSE(domain.contains(Scalar(5.551115123125783e-17)));
  Random random(7);
  std::set<std::string> drawn;
  for (int draw = 0; draw < 1000; ++draw) drawn.insert(to_string(domain.sample(random)));
  CHECK(drawn == std::set<std::string>{"-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", "0.3"});
  CHECK(points_of(uniform(0.8, 1.0, 0.1)) == std::vector{0.8, 0.9, 1.0});
  CHECK(points_of(uniform(-1e-3, 1e-3, 5e-4)) == std::vector{-1e-3, -5e-4, 0.0, 5e-4, 1e-3});
  CHECK(to_string(uniform(-0.0, 1)) == "uniform(0, 1)");
}

// Against integers: low, high and step are so many units of the last decimal place.
TEST_CASE("each point of a range with a step is the number that one writes for it",
          "[tune][domain]") {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    const int behind_point = static_cast<int>(random.below(12));
    const auto low = static_cast<std::int64_t>(random.below(2'000'000)) - 1'000'000;
    const auto step = static_cast<std::int64_t>(random.below(30'000)) + 1;
    const auto last = static_cast<std::int64_t>(random.below(400));
    const auto rest = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(step)));
    const auto high = low + last * step + rest;
    const auto domain = uniform(written(low, behind_point), written(high, behind_point),
                                written(step, behind_point));
    CAPTURE(round, to_string(domain));
    REQUIRE(domain.last_step() == static_cast<std::uint64_t>(last));
    const auto at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last) + 1));
    for (const std::int64_t steps : {std::int64_t{0}, at, last}) {
      const double point = written(low + steps * step, behind_point);
      const auto number = static_cast<std::uint64_t>(steps);
      REQUIRE(real(domain.at_step(number)) == point);
      REQUIRE_FALSE(is_negative_zero(real(domain.at_step(number))));
      REQUIRE(domain.contains(Scalar(point)));
      REQUIRE(domain.steps_to(Scalar(point)) == number);
      REQUIRE(real(domain.nearest(point + 0.3 * written(step, behind_point))) == point);
    }
    const auto drawn = domain.sample(random);
    REQUIRE(domain.contains(drawn));
    REQUIRE_FALSE(is_negative_zero(real(drawn)));
  }
}

TEST_CASE("a rounded normal number is the multiple of its step that one writes", "[tune][domain]") {
  Random random(13);
  for (int round = 0; round < 3000; ++round) {
    const int behind_point = static_cast<int>(random.below(12));
    const auto step = static_cast<std::int64_t>(random.below(999)) + 1;
    const auto times = static_cast<std::int64_t>(random.below(4001)) - 2000;
    const double each = written(step, behind_point);
    const auto domain = normal(0, 100 * each, each);
    const double multiple = written(times * step, behind_point);
    const double off = (random.unit() - 0.5) * 0.9 * each;
    CAPTURE(to_string(domain), times);
    REQUIRE(real(domain.nearest(multiple + off)) == multiple + 0.0);
    REQUIRE_FALSE(is_negative_zero(real(domain.nearest(-std::abs(off)))));
    const auto drawn = domain.sample(random);
    REQUIRE(domain.contains(drawn));
    REQUIRE_FALSE(is_negative_zero(real(drawn)));
  }
  CHECK(real(normal(0, 1, 0.1).nearest(0.31)) == 0.3);
  CHECK(real(normal(0, 1e300, 1e-5).nearest(1e280)) == 1e280);
}

TEST_CASE("steps that no decimal has reach zero and both ends", "[tune][domain]") {
  CHECK(points_of(uniform(0, 1, 1.0 / 3)) == std::vector{0.0, 1.0 / 3, 2.0 / 3, 1.0});
  const auto through_zero = points_of(uniform(-1, 1, 1.0 / 3));
  REQUIRE(through_zero.size() == 7);
  CHECK(through_zero[3] == 0);
  CHECK(through_zero.back() == 1);
  const double near_one = 0.1 * 3 + 0.7;  // of sums, as programs make them
  CHECK(points_of(uniform(0, near_one, 0.1)).size() == 11);
  const double short_of = 1 - 0.9;  // 0.09999999999999998
  CHECK(points_of(uniform(0, short_of, 0.1)) == std::vector{0.0, short_of});
}

TEST_CASE("a step that a double cannot tell from none beside the bounds is refused",
          "[tune][domain]") {
  CHECK_THROWS_WITH(
      uniform(1e17, 1e17 + 160, 1),
      Equals("uniform(1e+17, 100000000000000160, 1): a double does not tell neighbours apart that "
             "are so near each other"));
  CHECK(points_of(uniform(9e15, 9e15 + 2, 1)) == std::vector{9e15, 9e15 + 1, 9e15 + 2});
}

// The distance between two doubles is 1.16e-10 there.
TEST_CASE("points that are hardly further apart than two doubles are told apart",
          "[tune][domain]") {
  const auto domain = uniform(1e6, 1000000.00000012, 1.2e-10);
  REQUIRE(domain.last_step() == 1000u);
  std::set<double> points;
  for (std::uint64_t step = 0; step <= 1000; ++step) {
    const auto point = domain.at_step(step);
    CAPTURE(step);
    CHECK(points.insert(real(point)).second);
    CHECK(domain.contains(point));
    CHECK(domain.steps_to(point) == step);
  }
}

TEST_CASE("decimal arithmetic says where it does not apply", "[tune][domain]") {
  CHECK(written_sum(-0.3, 3, 0.1) == 0.0);
  CHECK(written_sum(0, -3, 0.1) == -0.3);
  CHECK(written_sum(1e300, 0, 1e300) == 1e300);
  CHECK(written_sum(0, 3, 5e-324) == 15e-324);
  CHECK_FALSE(written_sum(0, 3, 1.0 / 3));
  CHECK_FALSE(written_sum(1, 1, 1e-60));
  CHECK(written_steps(0, 1, 0.3) == 3u);
  CHECK(written_steps(0.1, 0.7, 0.1) == 6u);
  CHECK(written_steps(0, 0.25, 0.1) == 2u);
  CHECK(written_steps(0, 1e300, 2e299) == 5u);
  CHECK_FALSE(written_steps(0, 1, 1.0 / 3));
  CHECK_FALSE(written_steps(0, 1e60, 1e-3));
}

TEST_CASE("integers far from zero are told apart", "[tune][domain]") {
  for (const auto& domain : {integer(kFar, kFar + 7), log_integer(kFar, kFar + 7)}) {
    CAPTURE(to_string(domain));
    std::set<std::int64_t> drawn;
    Random random(3);
    for (int draw = 0; draw < 400; ++draw) drawn.insert(whole(domain.sample(random)));
    CHECK(drawn.size() == 8);
    CHECK(*drawn.begin() == kFar);
    CHECK(*drawn.rbegin() == kFar + 7);
    CHECK(domain.nearest_to(Scalar(kFar + 3)) == Scalar(kFar + 3));
    CHECK(domain.nearest_to(Scalar(kFar + 9)) == Scalar(kFar + 7));
    CHECK(domain.nearest_to(Scalar(INT64_MIN)) == Scalar(kFar));
  }
  CHECK(integer(kFar, kFar + 70, 10).nearest_to(Scalar(kFar + 26)) == Scalar(kFar + 30));
  CHECK(integer(-kFar, kFar, 10).nearest(-(1 << 30)) == Scalar(-(1 << 30) - 2));
  CHECK(integer(-8, 8, 4).nearest(-6.4) == Scalar(-8));
  CHECK(uniform(0, 1e18, 1e4).nearest_to(Scalar(30'001)) == Scalar(3e4));
}

TEST_CASE("very large integers are drawn with all of their digits", "[tune][domain]") {
  const auto domain = log_integer(1, INT64_MAX);
  Random random(5);
  int large = 0, odd = 0;
  for (int draw = 0; draw < 2000; ++draw) {
    const auto value = whole(domain.sample(random));
    if (value < std::int64_t{1} << 56) continue;
    ++large;
    odd += value % 2 != 0 ? 1 : 0;
  }
  CHECK(large > 100);
  CHECK(odd > large / 3);
}

TEST_CASE("each number of a range has a cell of its own", "[tune][domain]") {
  for (const double below : {0.0, 0.5, 63.5, 0x1p60}) {
    const Places places(1000, below);
    for (std::uint64_t number = 0; number <= 1000; ++number) {
      const auto block = places.block_of(number);
      REQUIRE(block.first == number);
      REQUIRE(block.size == 1);
      const auto [low, high] = places.cell(block);
      REQUIRE(low < places.middle(block));
      REQUIRE(places.middle(block) < high);
      REQUIRE(places.at(places.middle(block)).first == number);
    }
    CHECK(places.cell(places.block_of(0)).first == 0);
    CHECK(places.cell(places.block_of(1000)).second == 1);
  }
}

TEST_CASE("the blocks of a very long range lie side by side and have all of its numbers",
          "[tune][domain]") {
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  for (const double below : {0.0, 0.5}) {
    const Places places(last, below);
    Random random(17);
    for (int round = 0; round < 3000; ++round) {
      const auto number = random.next() >> random.below(64);
      const auto block = places.block_of(number);
      CAPTURE(number, block.first, block.size);
      REQUIRE(block.first <= number);
      REQUIRE(number - block.first < block.size);
      REQUIRE(places.at(places.middle(block)).first == block.first);
      const auto [low, high] = places.cell(block);
      REQUIRE(low < high);
      const auto drawn = places.number_at(places.middle(block), random);
      REQUIRE(drawn - block.first < block.size);
      if (last - block.first >= block.size)
        REQUIRE(places.block_of(block.first + block.size).first == block.first + block.size);
    }
    CHECK(places.number_at(0, random) == 0);
    CHECK(places.number_at(1, random) == last);
  }
}

}  // namespace steps_test
