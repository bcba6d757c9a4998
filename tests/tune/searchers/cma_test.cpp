#include "searchers/cmaes/cma.hpp"

#include <catch2/catch.hpp>

#include "searchers/cmaes/margin.hpp"

namespace cma_test {

using namespace troupe::tune;

namespace {

Eigen::VectorXd middle(Eigen::Index d) { return Eigen::VectorXd::Constant(d, 0.5); }

CellOf cells_of(int count) {
  return [count](double x) {
    const double cell = std::min(std::floor(x * count), count - 1.0);
    return std::pair(cell / count, (cell + 1) / count);
  };
}

/// A state with the standard deviation `sigma` along each coordinate.
CmaState state_at(const Eigen::VectorXd& mean, double sigma) {
  const auto d = mean.size();
  return {.mean = mean,
          .sigma = sigma,
          .covariance = Eigen::MatrixXd::Identity(d, d),
          .path_sigma = Eigen::VectorXd::Zero(d),
          .path_c = Eigen::VectorXd::Zero(d),
          .spread = Eigen::VectorXd::Ones(d)};
}

}  // namespace

TEST_CASE("the constants of CMA-ES for five fields are those of the tutorial", "[tune][cmaes]") {
  const CmaConstants k(5, 0);

  CHECK(k.lambda == 8);
  CHECK(k.mu == 4);
  CHECK(k.weights[0] == Approx(0.529930).epsilon(1e-5));
  CHECK(k.weights[1] == Approx(0.285714).epsilon(1e-5));
  CHECK(k.weights[2] == Approx(0.142857).epsilon(1e-5));
  CHECK(k.weights[3] == Approx(0.041498).epsilon(1e-4));
  CHECK(k.weights.tail(4).sum() == Approx(-1.98816).epsilon(1e-5));
  CHECK(k.mu_eff == Approx(2.60018).epsilon(1e-5));
  CHECK(k.c_sigma == Approx(0.365088).epsilon(1e-5));
  CHECK(k.d_sigma == Approx(1.365088).epsilon(1e-5));
  CHECK(k.c_c == Approx(0.450200).epsilon(1e-5));
  CHECK(k.c_1 == Approx(0.0472923).epsilon(1e-5));
  CHECK(k.c_mu == Approx(0.0478589).epsilon(1e-5));
  CHECK(k.chi == Approx(2.128524).epsilon(1e-5));
}

TEST_CASE("a larger population of CMA-ES is taken as it is given", "[tune][cmaes]") {
  const CmaConstants k(2, 20);
  CHECK(k.lambda == 20);
  CHECK(k.mu == 10);
  CHECK(k.weights.head(10).sum() == Approx(1));
  CHECK(k.weights.tail(10).maxCoeff() < 0);
}

TEST_CASE("a generation moves the mean by the weighted steps of its best points", "[tune][cmaes]") {
  Cma cma(middle(2), 0.1, 4, {{}, {}});
  const auto& w = cma.constants().weights;
  std::vector<CmaPoint> points;
  for (const double x : {0.6, 0.55, 0.5, 0.4}) points.push_back({Eigen::Vector2d(x, 0.5)});

  cma.update(points);

  CHECK(w.head(2).sum() == Approx(1));
  CHECK(cma.state().mean[0] == Approx(0.5 + w[0] * 0.1 + w[1] * 0.05));
  CHECK(cma.state().mean[1] == Approx(0.5));
  CHECK(cma.state().generation == 1);
  // The covariance has stretched along the coordinate on which the best points lay.
  CHECK(cma.state().covariance(0, 0) > cma.state().covariance(1, 1));
  CHECK(cma.state().covariance(0, 1) == Approx(0).margin(1e-15));
}

TEST_CASE("a step from an earlier distribution is cut to the length of injected points",
          "[tune][cmaes]") {
  const auto moved = [](bool is_own) {
    Cma cma(middle(1), 0.01, 2, {CellOf()});
    const Eigen::VectorXd far = Eigen::VectorXd::Constant(1, 1.0);
    cma.update(std::vector<CmaPoint>{{far, is_own}, {middle(1), true}});
    return cma.state().mean[0] - 0.5;
  };
  CHECK(moved(true) == Approx(0.5));
  CHECK(moved(false) == Approx(0.01 * (1 + 2.0 / 3)));
}

TEST_CASE("a wide distribution draws nothing outside of the bounds", "[tune][cmaes]") {
  const Cma cma(Eigen::VectorXd::Zero(3), 1, 0, {{}, {}, {}});
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const auto x = cma.draw(random);
    REQUIRE(x.minCoeff() >= 0);
    REQUIRE(x.maxCoeff() <= 1);
  }
}

TEST_CASE("the margin lets a converged distribution leave the cell of its mean", "[tune][cmaes]") {
  // One field and a population of 4: a probability of 1/4, an eighth on each side.
  auto inside = state_at(Eigen::VectorXd::Constant(1, 0.55), 1e-6);
  keep_margin(inside, {cells_of(10)}, 4);
  CHECK(inside.mean[0] == Approx(0.55));
  CHECK(inside.sigma * inside.spread[0] == Approx(0.0434651).epsilon(1e-5));

  auto first = state_at(Eigen::VectorXd::Constant(1, 0.05), 0.001);
  keep_margin(first, {cells_of(10)}, 4);
  CHECK(first.mean[0] == Approx(0.1 - 0.001 * 0.6744898));
  CHECK(first.spread[0] == 1);

  auto last = state_at(Eigen::VectorXd::Constant(1, 0.95), 0.001);
  keep_margin(last, {cells_of(10)}, 4);
  CHECK(last.mean[0] == Approx(0.9 + 0.001 * 0.6744898));
}

TEST_CASE("the margin takes what it gives one side from where there is most", "[tune][cmaes]") {
  auto state = state_at(Eigen::VectorXd::Constant(1, 0.51), 0.02);
  keep_margin(state, {cells_of(10)}, 4);
  const double deviation = state.sigma * state.spread[0];
  const auto below = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  const double under = below((0.5 - state.mean[0]) / deviation);
  const double over = below((state.mean[0] - 0.6) / deviation);
  CHECK(over == Approx(0.125));
  CHECK(under < 0.3085375);  // what it was
  CHECK(under > 0.125);
}

TEST_CASE("a real coordinate and one wide enough keep their distribution", "[tune][cmaes]") {
  auto state = state_at(middle(2), 0.2);
  keep_margin(state, {{}, cells_of(5)}, 6);
  CHECK(state.mean == middle(2));
  CHECK(state.spread == Eigen::VectorXd::Ones(2));
}

TEST_CASE("CMA-ES turns along a narrow valley and finds its lowest place", "[tune][cmaes]") {
  Cma cma(middle(2), 1.0 / 6, 0, {{}, {}});
  Random random(3);
  const auto value = [](const Eigen::VectorXd& x) {
    const double along = x[0] + x[1] - 1.3, across = x[0] - x[1] - 0.1;
    return along * along + 1e4 * across * across;
  };
  for (int generation = 0; generation < 150; ++generation) {
    std::vector<CmaPoint> points;
    for (std::size_t i = 0; i < cma.constants().lambda; ++i) points.push_back({cma.draw(random)});
    std::ranges::sort(points, {}, [&](const CmaPoint& point) { return value(point.x); });
    cma.update(points);
  }
  CHECK(cma.state().mean[0] == Approx(0.7).margin(1e-5));
  CHECK(cma.state().mean[1] == Approx(0.6).margin(1e-5));
}

}  // namespace cma_test
