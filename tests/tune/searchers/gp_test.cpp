#include "searchers/gp/acquisition.hpp"

#include <catch2/catch.hpp>

#include "searchers/gp/lbfgs.hpp"

namespace gp_test {

using namespace troupe::tune;

namespace {

GpData data_of(Eigen::Index n, Eigen::Index d, std::uint64_t seed) {
  GpData data{.x = Eigen::MatrixXd(n, d),
              .y = Eigen::VectorXd(n),
              .is_category = std::vector<bool>(static_cast<std::size_t>(d))};
  Random random(seed);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < d; ++j) data.x(i, j) = random.unit();
    data.y[i] = std::sin(5 * data.x(i, 0)) + 0.3 * data.x.row(i).sum();
  }
  data.y.array() -= data.y.mean();
  data.y /= std::sqrt(data.y.squaredNorm() / static_cast<double>(n));
  return data;
}

/// (f(x + h) - f(x - h)) / 2h along coordinate j.
template <class Function>
double slope(const Function& f, Eigen::VectorXd x, Eigen::Index j, double h = 1e-5) {
  x[j] += h;
  const double above = f(x);
  x[j] -= 2 * h;
  return (above - f(x)) / (2 * h);
}

GpParameters parameters_of(const Eigen::VectorXd& logs) {
  const auto d = logs.size() - 2;
  return {logs.head(d).array().exp(), std::exp(logs[d]), kLeastNoise + std::exp(logs[d + 1])};
}

}  // namespace

TEST_CASE("the Matern kernel of a Gaussian process has its values by hand", "[tune][gp]") {
  Eigen::MatrixXd d2(1, 3);
  d2 << 0, 0.2, 5;  // r = 0, 1, 5
  const auto k = matern(d2);
  CHECK(k(0, 0) == Approx(1));
  CHECK(k(0, 1) == Approx((1 + 1 + 1.0 / 3) * std::exp(-1)));
  CHECK(k(0, 2) == Approx((1 + 5 + 25.0 / 3) * std::exp(-5)));
  const auto of_distance = [](const Eigen::VectorXd& x) { return matern(x)(0, 0); };
  CHECK(matern_slope(d2)(0, 1) == Approx(slope(of_distance, Eigen::VectorXd::Constant(1, 0.2), 0)));
  CHECK(matern_slope(d2)(0, 0) == Approx(-5.0 / 6));
}

TEST_CASE("two categories are one apart whichever they are", "[tune][gp]") {
  Eigen::MatrixXd a(1, 2), b(2, 2);
  a << 0.5, 0.125;
  b << 0.7, 0.875, 0.5, 0.125;
  const auto d2 = squared_distances(a, b, Eigen::Vector2d(2, 3), {false, true});
  CHECK(d2(0, 0) == Approx(2 * 0.04 + 3));
  CHECK(d2(0, 1) == 0);
}

TEST_CASE("L-BFGS finds the lowest place of a bent valley, inside its box and at its side",
          "[tune][gp]") {
  const SmoothFunction valley = [](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    const double across = x[1] - x[0] * x[0], along = 1 - x[0];
    gradient[0] = -400 * across * x[0] - 2 * along;
    gradient[1] = 200 * across;
    return 100 * across * across + along * along;
  };
  const Eigen::Vector2d start(-1.2, 1), low(-2, -2), high(2, 2);
  const LbfgsOptions exact{.iterations = 200, .gradient = 1e-8, .decrease = 0};
  const auto inside = minimize(valley, start, low, high, exact);
  CHECK(inside.x[0] == Approx(1).epsilon(1e-6));
  CHECK(inside.x[1] == Approx(1).epsilon(1e-6));

  // With x0 <= 1/2 the lowest place is at the side, (1/2, 1/4).
  const auto beside = minimize(valley, start, low, Eigen::Vector2d(0.5, 2), exact);
  CHECK(beside.x[0] == 0.5);
  CHECK(beside.x[1] == Approx(0.25).epsilon(1e-6));
  CHECK(beside.value == Approx(0.25).epsilon(1e-6));
}

TEST_CASE("the likelihood of one observation is that of its normal distribution", "[tune][gp]") {
  const GpData data{.x = Eigen::MatrixXd::Constant(1, 1, 0.5),
                    .y = Eigen::VectorXd::Constant(1, 2.0),
                    .is_category = {false}};
  Eigen::VectorXd gradient;
  const double found = log_posterior(data, {Eigen::VectorXd::Ones(1), 3, 0.5}, gradient);
  const double likelihood = -0.5 * (4 / 3.5 + std::log(3.5) + std::log(2 * M_PI));
  const double priors = -0.2 + std::log(3.0) - 3 + 0.1 * std::log(0.5) - 15;
  CHECK(found == Approx(likelihood + priors));
}

TEST_CASE("the gradient of the likelihood is its slope", "[tune][gp]") {
  auto data = data_of(12, 3, 4);
  data.is_category[2] = true;
  for (auto& x : data.x.col(2)) x = x > 0.5 ? 0.75 : 0.25;
  Eigen::VectorXd logs(5);
  logs << 0.7, -0.4, 0.3, 0.2, -3;
  Eigen::VectorXd gradient, ignored;
  log_posterior(data, parameters_of(logs), gradient);
  const auto value = [&](const Eigen::VectorXd& at) {
    return log_posterior(data, parameters_of(at), ignored);
  };
  for (Eigen::Index j = 0; j < 5; ++j) {
    CAPTURE(j);
    CHECK(gradient[j] == Approx(slope(value, logs, j)).epsilon(1e-5));
  }
}

TEST_CASE("a fitted process has a long length where a field decides nothing", "[tune][gp]") {
  auto data = data_of(40, 2, 9);
  for (Eigen::Index i = 0; i < 40; ++i) data.y[i] = std::sin(6 * data.x(i, 0));
  const auto parameters = fitted(data, {default_parameters(2)});
  CHECK(parameters.inverse_squared_lengths[0] > 10 * parameters.inverse_squared_lengths[1]);
  CHECK(parameters.noise < 1e-3);
}

TEST_CASE("a posterior passes through its observations and widens away from them", "[tune][gp]") {
  const auto data = data_of(8, 2, 1);
  const GpPosterior posterior(data, {}, {Eigen::Vector2d(4, 4), 1, 1e-6});
  const auto at = posterior.at(data.x);
  for (Eigen::Index i = 0; i < 8; ++i) {
    CHECK(at[static_cast<std::size_t>(i)].mean == Approx(data.y[i]).margin(1e-3));
    CHECK(at[static_cast<std::size_t>(i)].variance < 1e-5);
  }
  Eigen::MatrixXd far(1, 2);
  far << 30, 30;
  CHECK(posterior.at(far)[0].mean == Approx(0).margin(1e-9));
  CHECK(posterior.at(far)[0].variance == Approx(1));
  CHECK(posterior.best() == data.y.maxCoeff());
}

TEST_CASE("what is awaited takes variance from a posterior and leaves its mean", "[tune][gp]") {
  const auto data = data_of(8, 2, 1);
  const GpParameters parameters{Eigen::Vector2d(4, 4), 1, 1e-6};
  Eigen::MatrixXd awaited(1, 2), near(1, 2);
  awaited << 0.95, 0.05;
  near << 0.94, 0.06;
  const GpPosterior without(data, {}, parameters), with(data, awaited, parameters);
  CHECK(with.at(near)[0].mean == Approx(without.at(near)[0].mean));
  CHECK(with.at(near)[0].variance < 0.1 * without.at(near)[0].variance);
}

TEST_CASE("the gradients of a posterior are its slopes", "[tune][gp]") {
  const auto data = data_of(10, 3, 2);
  Eigen::MatrixXd awaited(1, 3);
  awaited << 0.2, 0.3, 0.9;
  const GpPosterior posterior(data, awaited, {Eigen::Vector3d(3, 8, 1), 1.5, 1e-3});
  const Eigen::Vector3d x(0.4, 0.6, 0.7);
  GpPosterior::Gradients gradients;
  const auto moments = posterior.at(x, gradients);
  CHECK(moments.mean == Approx(posterior.at(Eigen::MatrixXd(x.transpose()))[0].mean));
  for (Eigen::Index j = 0; j < 3; ++j) {
    CAPTURE(j);
    const auto mean = [&](const Eigen::VectorXd& at) {
      return posterior.at(Eigen::MatrixXd(at.transpose()))[0].mean;
    };
    const auto variance = [&](const Eigen::VectorXd& at) {
      return posterior.at(Eigen::MatrixXd(at.transpose()))[0].variance;
    };
    CHECK(gradients.mean[j] == Approx(slope(mean, x, j)).epsilon(1e-5));
    CHECK(gradients.variance[j] == Approx(slope(variance, x, j)).epsilon(1e-5));
  }
}

TEST_CASE("the log of the expected improvement is exact near and far", "[tune][gp]") {
  // z = 0: deviation / sqrt(2 pi); z = 1: Phi(1) + phi(1) = 0.841345 + 0.241971.
  CHECK(log_improvement(3, 2, 3).value == Approx(std::log(2 / std::sqrt(2 * M_PI))));
  CHECK(log_improvement(4, 1, 3).value == Approx(std::log(1.0833155)));
  // z = -40, where the improvement is about 1e-351: phi(40) / 40^2 (1 - 3/40^2 + 15/40^4 ...).
  CHECK(log_improvement(0, 1, 40).value ==
        Approx(-800 - 0.918938533 - 2 * std::log(40) + std::log(1 - 0.00186916)).epsilon(1e-9));
  // Both formulas meet where one takes over from the other.
  CHECK(log_improvement(-25 + 1e-9, 1, 0).value ==
        Approx(log_improvement(-25 - 1e-9, 1, 0).value).epsilon(1e-9));
}

TEST_CASE("the derivatives of the log of the expected improvement are its slopes", "[tune][gp]") {
  for (const double mean : {3.0, 0.5, -2.0, -24.0, -30.0, -100.0}) {
    CAPTURE(mean);
    const Eigen::Vector2d at(mean, 0.8);
    const auto value = [](const Eigen::VectorXd& x) {
      return log_improvement(x[0], x[1], 0).value;
    };
    const auto improvement = log_improvement(mean, 0.8, 0);
    CHECK(improvement.by_mean == Approx(slope(value, at, 0)).epsilon(1e-5));
    CHECK(improvement.by_deviation == Approx(slope(value, at, 1)).epsilon(1e-5));
  }
}

TEST_CASE("the improvement is climbed to its top along numbers and categories alike",
          "[tune][gp]") {
  auto data = data_of(20, 2, 6);
  data.is_category[1] = true;
  for (Eigen::Index i = 0; i < 20; ++i) {
    data.x(i, 1) = i % 2 == 0 ? 0.25 : 0.75;
    data.y[i] = (i % 2 == 0 ? 0.0 : 1.0) - 4 * std::pow(data.x(i, 0) - 0.62, 2);
  }
  const GpPosterior posterior(data, {}, {Eigen::Vector2d(4, 1), 1, 1e-6});
  const std::vector<GpCoordinate> coordinates{
      {}, {.is_category = true, .values = {0.25, 0.75}, .settled = [](double x) {
             return x < 0.5 ? 0.25 : 0.75;
           }}};
  Random random(3);
  const auto x = maximized_improvement(posterior, coordinates, data.x.topRows(1), random,
                                       {.candidates = 64, .climbs = 4});
  CHECK(x[1] == 0.75);
  CHECK(x[0] == Approx(0.62).margin(0.03));
}

}  // namespace gp_test
