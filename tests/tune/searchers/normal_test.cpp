#include "searchers/normal.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

namespace normal_test {

using namespace troupe::tune;

// The figures were computed with 50 digits.
TEST_CASE("the normal cdf and its logarithm are right far out in both tails", "[tune][normal]") {
  struct Figure {
    double x, log_cdf;
  };
  const auto [x, log_cdf] = GENERATE(values<Figure>({{-1000, -500007.826694812184},
                                                     {-100, -5005.52420869420509},
                                                     {-38.5, -745.695270290411081},
                                                     {-30, -454.321243956343197},
                                                     {-25.5, -329.284148987179535},
                                                     {-24.5, -304.244270740963711},
                                                     {-10, -53.2312851505124706},
                                                     {-3, -6.60772622151034954},
                                                     {-1, -1.84102164500926351},
                                                     {-0.001, -0.693945383466965179},
                                                     {0, -0.693147180559945309},
                                                     {0.5, -0.368946415288656393},
                                                     {2, -0.0230129093289634885},
                                                     {6, -9.86587645524375732e-10}}));
  CAPTURE(x);
  CHECK(normal_log_cdf(x) == Approx(log_cdf).epsilon(1e-13));
  if (x > -35) CHECK(normal_cdf(x) == Approx(std::exp(log_cdf)).epsilon(1e-11));
  CHECK(normal_log_quantile(log_cdf) == Approx(x).epsilon(1e-9).margin(1e-12));
}

TEST_CASE("the normal quantile is the inverse of the cdf", "[tune][normal]") {
  for (double x = -8; x < 5; x += 0.01)
    CHECK(normal_quantile(normal_cdf(x)) == Approx(x).epsilon(1e-9).margin(1e-12));
  CHECK(normal_quantile(0) == -std::numeric_limits<double>::infinity());
  CHECK(normal_quantile(1) == std::numeric_limits<double>::infinity());
}

TEST_CASE("the logarithm of a normal's mass is right wherever it lies", "[tune][normal]") {
  struct Figure {
    double low, high, log_mass;
  };
  const auto [low, high, log_mass] = GENERATE(values<Figure>({{-1, 2, -0.20016629432446258},
                                                              {-0.001, 0.002, -6.72808202351855008},
                                                              {-9, 9, -2.2571768119076813e-19},
                                                              {0, 1, -1.07486232686207138},
                                                              {2, 3, -3.84435342633420562},
                                                              {5, 20, -15.0649983939887257},
                                                              {-40, -38, -726.55721601882013},
                                                              {30, 31, -454.321243956343252},
                                                              {-1e-09, 1e-09, -20.9490571895911385},
                                                              {-0.5, 0, -1.65306351425556763}}));
  CAPTURE(low, high);
  CHECK(normal_log_mass(low, high) == Approx(log_mass).epsilon(1e-11));
  CHECK(normal_log_mass(-high, -low) == Approx(log_mass).epsilon(1e-11));
}

TEST_CASE("a truncated normal's quantile halves its mass, also in a tail", "[tune][normal]") {
  const auto [low, high] =
      GENERATE(values<std::pair<double, double>>({{-1, 2}, {3, 9}, {-50, -40}, {60, 61}, {-9, 0}}));
  CAPTURE(low, high);
  const double half = truncated_normal_quantile(0.5, low, high);
  CHECK(low < half);
  CHECK(half < high);
  CHECK(normal_log_mass(low, half) == Approx(normal_log_mass(half, high)).epsilon(1e-9));
  CHECK(truncated_normal_quantile(0, low, high) == Approx(low));
  CHECK(truncated_normal_quantile(1, low, high) == Approx(high));
  double last = low;
  for (double part = 0.01; part < 1; part += 0.01) {
    const double x = truncated_normal_quantile(part, low, high);
    CHECK(x > last);
    last = x;
  }
}

TEST_CASE("draws of a truncated normal have its mean and stay inside", "[tune][normal]") {
  Random random(5);
  double sum = 0, squares = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double x = draw_truncated_normal(random, 0.2, 0.5, 0, 1);
    REQUIRE(x >= 0);
    REQUIRE(x <= 1);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws;
  CHECK(mean == Approx(0.4142355).margin(0.003));
  CHECK(squares / draws - mean * mean == Approx(0.068917813).margin(0.001));
}

TEST_CASE("draws of a normal have its mean and deviation", "[tune][normal]") {
  Random random(6);
  double sum = 0, squares = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double x = draw_normal(random);
    sum += x;
    squares += x * x;
  }
  CHECK(sum / draws == Approx(0).margin(0.015));
  CHECK(squares / draws == Approx(1).margin(0.02));
}

}  // namespace normal_test
