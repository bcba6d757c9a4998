#include <troupe/tune/domain.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include <catch2/catch.hpp>

namespace domain_test {

using namespace troupe::tune;
using Catch::Matchers::Equals;

namespace {
double real(const Scalar& scalar) { return std::get<double>(scalar.value()); }
constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInf = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("a domain that can not be is refused where it is made, with its values",
          "[tune][domain]") {
  CHECK_THROWS_WITH(uniform(2, 1), Equals("uniform(2, 1): the lower bound is above the upper one"));
  CHECK_THROWS_WITH(loguniform(0, 1),
                    Equals("loguniform(0, 1): a logarithm needs a lower bound above 0"));
  CHECK_THROWS_WITH(loguniform(-1, 1),
                    Equals("loguniform(-1, 1): a logarithm needs a lower bound above 0"));
  CHECK_THROWS_WITH(integer(5, 4), Equals("integer(5, 4): the lower bound is above the upper one"));
  CHECK_THROWS_WITH(choice(std::vector<Scalar>{}), Equals("choice(): there is no value to choose"));
  CHECK_THROWS_WITH(grid(std::vector<Scalar>{}), Equals("grid(): there is no value to choose"));
  CHECK_THROWS_WITH(uniform(0, kNan), Equals("uniform(0, nan): every value has to be finite"));
  CHECK_THROWS_WITH(uniform(-kInf, 0), Equals("uniform(-inf, 0): every value has to be finite"));
  CHECK_THROWS_WITH(choice({0.1, kNan}), Equals("choice(0.1, nan): every value has to be finite"));
  CHECK_THROWS_WITH(Domain(kNan), Equals("nan: every value has to be finite"));
  CHECK_THROWS_WITH(uniform(-1e308, 1e308),
                    Equals("uniform(-1e+308, 1e+308): the range is too wide for a double"));
}

TEST_CASE("a choice is made of any range of values", "[tune][domain]") {
  const std::vector<double> rates{0.1, 0.01};
  CHECK(choice(rates) == choice({0.1, 0.01}));
  CHECK(choice(std::array<std::string, 2>{"adam", "sgd"}) == choice({"adam", "sgd"}));
}

TEST_CASE("every value that is drawn is in its domain and of its kind", "[tune][domain]") {
  const auto seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  const std::vector<Domain> domains{uniform(-3, 3),
                                    uniform(2, 2),
                                    loguniform(1e-6, 1e3),
                                    loguniform(1, std::nextafter(1, 2)),
                                    integer(-5, 5),
                                    integer(7, 7),
                                    integer(INT64_MIN, INT64_MAX),
                                    choice({"a", "b"}),
                                    grid({true, false}),
                                    uniform(-1, 1, 0.3),
                                    loguniform(0.1, 10, 0.1),
                                    integer(-7, 20, 4),
                                    integer(INT64_MIN, INT64_MAX, 1000),
                                    log_integer(1, 1'000'000),
                                    normal(-5, 10),
                                    normal(0, 1, 0.1),
                                    ordinal({"small", "large"}),
                                    Domain(42)};
  Random random(seed);
  for (const auto& domain : domains) {
    CAPTURE(to_string(domain));
    for (int draw = 0; draw < 2'000; ++draw) REQUIRE(domain.contains(domain.sample(random)));
  }
}

TEST_CASE("a log-uniform number falls into every decade equally often", "[tune][domain]") {
  const auto domain = loguniform(1e-4, 1.0);
  Random random(7);
  std::array<int, 4> decades{};
  constexpr int draws = 40'000;
  for (int draw = 0; draw < draws; ++draw) {
    ++decades.at(static_cast<std::size_t>(std::floor(std::log10(real(domain.sample(random))) + 4)));
  }
  // 4 standard deviations are 3.5 %.
  for (int count : decades) CHECK(count == Approx(draws / 4).epsilon(0.04));
}

TEST_CASE("both bounds of an integer range are drawn, all values equally often", "[tune][domain]") {
  const auto domain = integer(10, 15);
  Random random(11);
  std::array<int, 6> counts{};
  constexpr int draws = 60'000;
  for (int draw = 0; draw < draws; ++draw) {
    ++counts.at(
        static_cast<std::size_t>(std::get<std::int64_t>(domain.sample(random).value()) - 10));
  }
  for (int count : counts) CHECK(count == Approx(draws / 6).epsilon(0.04));
}

TEST_CASE("random numbers are the same on every machine", "[tune][random]") {
  Random random(0);  // the published sequence of SplitMix64 for seed 0
  CHECK(random.next() == 0xe220a8397b1dcdafu);
  CHECK(random.next() == 0x6e789e6aa1b965f4u);
  CHECK(random.next() == 0x06c45d188009454fu);
  CHECK(Random(1, 2, "lr").next() == Random(1, 2, "lr").next());
  CHECK(Random(1, 2, "lr").next() != Random(1, 2, "batch").next());
  CHECK(Random(1, 2, "lr").next() != Random(1, 3, "lr").next());
  CHECK(Random(1, 2, "lr").next() != Random(2, 1, "lr").next());
}

TEST_CASE("a scalar keeps its kind and prints as it can be read back", "[tune][scalar]") {
  CHECK(Scalar(1) != Scalar(1.0));
  CHECK(to_string(Scalar(0.1)) == "0.1");
  CHECK(to_string(Scalar(1e-5)) == "1e-05");
  CHECK(to_string(Scalar(-3)) == "-3");
  CHECK(to_string(Scalar(true)) == "true");
  CHECK(to_string(Scalar("adam")) == "adam");
  CHECK(kind_of(Scalar(2.0f)) == "real number");
  CHECK_THROWS_AS(Scalar(std::numeric_limits<std::uint64_t>::max()), std::invalid_argument);
  CHECK(to_string(Configuration{{"lr", 0.5}, {"name", "adam"}}) == "lr=0.5, name=adam");
}

TEST_CASE("a domain with a step has the multiples from its lower bound", "[tune][domain]") {
  std::set<double> seen;
  Random random(3);
  const auto quarters = uniform(0, 1, 0.25);
  for (int draw = 0; draw < 200; ++draw) seen.insert(real(quarters.sample(random)));
  CHECK(seen == std::set<double>{0, 0.25, 0.5, 0.75, 1});
  CHECK(to_string(quarters) == "uniform(0, 1, 0.25)");
  CHECK(quarters.nearest(0.6) == Scalar(0.5));
  CHECK(quarters.nearest(7) == Scalar(1.0));
  CHECK_FALSE(quarters.contains(Scalar(0.3)));
  // As people write them, and not 0.30000000000000004.
  CHECK(uniform(0, 1, 0.1).nearest(0.31) == Scalar(0.3));
  CHECK(uniform(0, 1, 0.1).contains(Scalar(0.7)));
  CHECK(uniform(0, 1, 0.1).range()->high == 1);
  CHECK(uniform(0, 1, 0.3).range()->high == 0.9);
  const auto thirds = integer(-4, 5, 3);
  std::set<std::int64_t> whole;
  for (int draw = 0; draw < 200; ++draw)
    whole.insert(std::get<std::int64_t>(thirds.sample(random).value()));
  CHECK(whole == std::set<std::int64_t>{-4, -1, 2, 5});
  CHECK_FALSE(thirds.contains(Scalar(0)));
  CHECK(thirds.nearest(0.6) == Scalar(2));
  CHECK(integer(INT64_MIN, INT64_MAX, INT64_MAX).nearest(0) == Scalar(-1));
}

TEST_CASE("a log integer falls into every octave about equally often", "[tune][domain]") {
  const auto domain = log_integer(1, 1023);
  Random random(5);
  std::array<int, 10> octaves{};
  constexpr int draws = 40'000;
  for (int draw = 0; draw < draws; ++draw) {
    const auto value = std::get<std::int64_t>(domain.sample(random).value());
    REQUIRE(domain.contains(Scalar(value)));
    ++octaves.at(static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(value)) - 1));
  }
  // From 0.5 the first octave reaches to 1.5, the others are an octave but for half a number.
  const double all = std::log(1023.5 / 0.5);
  for (std::size_t octave = 0; octave < octaves.size(); ++octave) {
    const auto low = std::exp2(static_cast<double>(octave)) - 0.5;
    const auto high = std::exp2(static_cast<double>(octave) + 1) - 0.5;
    CHECK(octaves[octave] == Approx(draws * std::log(high / low) / all).epsilon(0.06));
  }
}

TEST_CASE("a normal domain has its mean and its deviation", "[tune][domain]") {
  const auto domain = normal(3, 2);
  Random random(11);
  double sum = 0, squares = 0;
  constexpr int draws = 40'000;
  for (int draw = 0; draw < draws; ++draw) {
    const auto x = real(domain.sample(random));
    sum += x;
    squares += (x - 3) * (x - 3);
  }
  CHECK(sum / draws == Approx(3).margin(0.04));
  CHECK(std::sqrt(squares / draws) == Approx(2).epsilon(0.015));
  CHECK(normal(0, 1, 0.5).nearest(0.8) == Scalar(1.0));
  CHECK(normal(0, 1, 0.5).contains(Scalar(-2.5)));
  CHECK_FALSE(normal(0, 1, 0.5).contains(Scalar(0.3)));
}

TEST_CASE("steps and deviations that can not be are refused", "[tune][domain]") {
  CHECK_THROWS_WITH(uniform(0, 1, 0), Equals("uniform(0, 1, 0): the step has to be above 0"));
  CHECK_THROWS_WITH(integer(0, 9, -2), Equals("integer(0, 9, -2): the step has to be above 0"));
  CHECK_THROWS_WITH(uniform(0, 1, kNan),
                    Equals("uniform(0, 1, nan): every value has to be finite"));
  CHECK_THROWS_WITH(loguniform(0.1, 1, 0.2),
                    Equals("loguniform(0.1, 1, 0.2): the step of a logarithmic range has to be at "
                           "most its lower bound"));
  CHECK_THROWS_WITH(log_integer(0, 4),
                    Equals("log_integer(0, 4): a logarithm needs a lower bound above 0"));
  CHECK_THROWS_WITH(normal(0, 0), Equals("normal(0, 0): the deviation has to be above 0"));
  CHECK_THROWS_WITH(uniform(0, 1, 1e-300), Catch::Contains("more steps than a double can count"));
  CHECK_THROWS_WITH(ordinal({1, 2, 1}), Equals("ordinal(1, 2, 1): a value stands in it twice"));
  CHECK_THROWS_WITH(ordinal(std::vector<Scalar>{}),
                    Equals("ordinal(): there is no value to choose"));
}

}  // namespace domain_test
