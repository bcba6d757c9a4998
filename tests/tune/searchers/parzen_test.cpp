#include "searchers/tpe/parzen.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <catch2/catch.hpp>

namespace parzen_test {

using namespace troupe::tune;

namespace {

const SearchSpace kSpace{{"x", uniform(-5, 10)},
                         {"lr", loguniform(1e-4, 1)},
                         {"layers", integer(1, 8)},
                         {"kind", choice({"a", "b", "c"})}};

const Axes& axes() {
  static const Axes all(kSpace);
  return all;
}

/// Of trial i: fractions of multiples of irrational numbers.
std::vector<double> observed(std::size_t trial) {
  constexpr double step[] = {0.618034, 0.414214, 0.732051, 0.236068};
  std::vector<double> point;
  for (std::size_t axis = 0; axis < 4; ++axis)
    point.push_back(axes()[axis].settled(std::fmod(static_cast<double>(trial) * step[axis], 1.0)));
  return point;
}

ParzenEstimator estimator(std::size_t trials, const std::vector<std::size_t>& of) {
  std::vector<const Axis*> chosen;
  std::vector<AxisSample> samples;
  for (const auto axis : of) {
    AxisSample sample;
    for (std::size_t trial = 0; trial < trials; ++trial)
      sample.coordinates.push_back(observed(trial)[axis]);
    sample.sorted.resize(trials);
    std::iota(sample.sorted.begin(), sample.sorted.end(), 0u);
    std::ranges::stable_sort(sample.sorted, {},
                             [&](auto trial) { return sample.coordinates[trial]; });
    chosen.push_back(&axes()[axis]);
    samples.push_back(std::move(sample));
  }
  return {chosen, samples};
}

/// Of three configurations, on some of the axes.
std::vector<double> probe(std::size_t which, const std::vector<std::size_t>& of) {
  const std::vector<Configuration> probes{{{"x", -4.0}, {"lr", 2e-4}, {"layers", 1}, {"kind", "a"}},
                                          {{"x", 0.5}, {"lr", 0.01}, {"layers", 4}, {"kind", "b"}},
                                          {{"x", 9.0}, {"lr", 0.7}, {"layers", 8}, {"kind", "c"}}};
  const auto whole = axes().point(probes[which]);
  std::vector<double> point;
  for (const auto axis : of) point.push_back(whole[axis]);
  return point;
}

}  // namespace

// Logarithms of the densities that Optuna 5.0's estimator has for the same trials and priors, per
// coordinate in [0, 1]. Integers that come more than once are only there where the trials have equal
// weights: which of them is the first or the last of an axis is then the same.
TEST_CASE("the densities of TPE are those of Optuna", "[tune][tpe]") {
  struct Figure {
    std::size_t trials;
    std::vector<std::size_t> axes;
    std::vector<double> log_densities;
  };
  const std::vector<Figure> figures{
      {0, {0}, {-0.0529110883979, 0.0320889116021, -0.0529110883979}},
      {0, {1}, {-0.0492252956226, 0.0409778004909, -0.0654092862986}},
      {0, {2}, {-2.13469319288, -2.04106519653, -2.13469319288}},
      {0, {3}, {-1.09861228867, -1.09861228867, -1.09861228867}},
      {0, {0, 1, 2, 3}, {-3.33544186557, -3.0666107731, -3.35162585625}},
      {1, {0}, {0.0557218760262, 0.0607958121868, -0.15985985662}},
      {1, {1}, {0.0570411570535, 0.0359634324026, -0.178530794506}},
      {1, {2}, {-2.02970283255, -2.02773348062, -2.24526755585}},
      {1, {3}, {-0.762140052047, -1.32175583998, -1.32175583998}},
      {1, {0, 1, 2, 3}, {-2.56783087329, -3.26173283444, -3.7845192908}},
      {4, {0}, {0.18359986611, -0.046138971342, -0.138377877315}},
      {4, {1}, {0.310508304269, -0.02253060088, -0.536340094337}},
      {4, {2}, {-1.74148559956, -2.00872804053, -2.85951749984}},
      {4, {3}, {-0.875468737354, -1.23214368129, -1.23214368129}},
      {4, {0, 1, 2, 3}, {-0.357699297963, -2.76053341843, -4.7093077795}},
      {24, {0}, {0.0350717183424, -0.143663907809, -0.00390989750337}},
      {24, {1}, {0.303571254538, 0.227368421386, -0.516990215114}},
      {24, {2}, {-1.78099296264, -2.10852418283, -2.03509144261}},
      {24, {3}, {-0.996829594358, -1.09861228867, -1.21194097398}},
      {24, {0, 1, 3}, {1.16927790725, -4.15461573038, -4.43214959562}},
      {40, {0}, {0.0405535827916, -0.105324559862, -0.080162928117}},
      {40, {1}, {0.0658288130401, 0.105104056141, -0.140458580598}},
      {40, {3}, {-1.00525897405, -1.12073679118, -1.17762086708}},
      {40, {0, 1, 3}, {0.804403114999, -2.98739255033, -4.60481634334}},
  };
  for (const auto& [trials, of, log_densities] : figures) {
    const auto density = estimator(trials, of);
    for (std::size_t i = 0; i < log_densities.size(); ++i) {
      CAPTURE(trials, of, i);
      CHECK(density.log_density(probe(i, of)) == Approx(log_densities[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("what TPE's densities say of all values adds up to one", "[tune][tpe]") {
  const std::size_t trials = GENERATE(0, 1, 7, 120);
  CAPTURE(trials);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    CAPTURE(axis);
    const auto density = estimator(trials, {axis});
    const bool is_real = axes()[axis].kind() == Axis::Kind::Real;
    const auto cells = is_real ? 10'000 : static_cast<int>(axes()[axis].values());
    double sum = 0;
    for (int cell = 0; cell < cells; ++cell)
      sum += std::exp(density.log_density(std::vector{(cell + 0.5) / cells}));
    CHECK(sum / (is_real ? cells : 1) == Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("integers that are many have nearly the densities of real numbers", "[tune][tpe]") {
  const Axis real({"x", uniform(0, 1)}), few({"x", integer(1, 90'000)}),
      many({"x", integer(1, 200'000)});
  const AxisSample sample{.coordinates = std::vector(120, 0.3), .sorted = [] {
                            std::vector<std::uint32_t> sorted(120);
                            std::iota(sorted.begin(), sorted.end(), 0u);
                            return sorted;
                          }()};
  const auto at = [&](const Axis& axis) {
    const Axis* const axes[] = {&axis};
    return ParzenEstimator(axes, std::span(&sample, 1)).log_density(std::vector{0.305});
  };
  CHECK(at(few) + std::log(90'000) == Approx(at(real)).epsilon(1e-3));
  CHECK(at(many) + std::log(200'000) == Approx(at(real)).epsilon(1e-3));
}

TEST_CASE("narrowing divides the widths of the kernels of trials, not the prior's", "[tune][tpe]") {
  const Axis axis({"x", uniform(0, 1)});
  const Axis* const axes[] = {&axis};
  const AxisSample sample{.coordinates = {0.3}, .sorted = {0}};
  const auto truncated = [](double x, double mean, double deviation) {
    const auto below = [&](double at) {
      return 0.5 * std::erfc((mean - at) / deviation / std::sqrt(2.0));
    };
    const double z = (x - mean) / deviation;
    return std::exp(-0.5 * z * z) / (deviation * std::sqrt(2 * std::acos(-1.0))) /
           (below(1) - below(0));
  };
  for (const double narrowing : {1.0, 2.0}) {
    const ParzenEstimator density(axes, std::span(&sample, 1), narrowing);
    for (const double x : {0.3, 0.5, 0.9}) {
      CAPTURE(narrowing, x);
      const double expected = 0.5 * truncated(x, 0.3, 0.7 / narrowing) + 0.5 * truncated(x, 0.5, 1);
      CHECK(density.log_density(std::vector{x}) == Approx(std::log(expected)).epsilon(1e-9));
    }
  }
}

TEST_CASE("TPE draws what its densities say", "[tune][tpe]") {
  const auto density = estimator(40, {2, 3});
  std::map<std::vector<double>, int> counts;
  Random random(9);
  constexpr int draws = 200'000;
  for (int i = 0; i < draws; ++i) ++counts[density.draw(random)];
  CHECK(counts.size() == 24);
  for (const auto& [point, count] : counts) {
    const double expected = draws * std::exp(density.log_density(point));
    CHECK(std::abs(count - expected) < 5 * std::sqrt(expected));
  }
}

TEST_CASE("TPE draws real numbers as its densities say", "[tune][tpe]") {
  const auto density = estimator(6, {1});
  std::vector<int> counts(20);
  Random random(10);
  constexpr int draws = 200'000;
  for (int i = 0; i < draws; ++i)
    ++counts[static_cast<std::size_t>(std::min(density.draw(random)[0], 0.999999) * 20)];
  for (std::size_t part = 0; part < counts.size(); ++part) {
    double expected = 0;
    for (int i = 0; i < 100; ++i) {
      const double x = (static_cast<double>(part) + (i + 0.5) / 100) / 20;
      expected += draws / 2000.0 * std::exp(density.log_density(std::vector{x}));
    }
    CHECK(std::abs(counts[part] - expected) < 5 * std::sqrt(expected));
  }
}

}  // namespace parzen_test
