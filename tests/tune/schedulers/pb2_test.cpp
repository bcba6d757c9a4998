#include <troupe/tune/schedulers/pb2.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <catch2/catch.hpp>

#include "schedulers/pb2/bandit.hpp"
#include "schedulers/pb2/time_varying.hpp"
#include "support/toy.hpp"

namespace pb2_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

const SearchSpace kLr{{"lr", loguniform(1e-4, 1)}};

/// Members in lockstep that climb the faster, the nearer their learning rate is to the best one,
/// which falls from 0.3 to 0.0005 while they train. What a member has is the sum of its steps.
class Drifting {
 public:
  static constexpr std::int64_t kSteps = 60;

  Drifting(const SchedulerFactory& scheduler, std::size_t members, std::uint64_t seed)
      : experiment_{{.objective = {"q", Max}, .seed = seed},
                    std::make_unique<RandomSearcher>(kLr, seed, members),
                    scheduler({"q", Max}, seed)},
        members_{members} {}

  static double best_log(std::int64_t t) {
    return -0.5 - 2.8 * static_cast<double>(t) / static_cast<double>(kSteps);
  }
  static double step_with(double lr, std::int64_t t) {
    const double off = std::log10(lr) - best_log(t);
    return std::exp(-2 * off * off);
  }

  /// -> the best member's sum, of kSteps at most.
  double run() {
    for (std::size_t member = 0; member < members_; ++member)
      begin(std::get<Launch>(experiment_.next(Seconds(0))));
    while (std::ranges::any_of(experiment_.trials(),
                               [](const Trial& trial) { return trial.t < kSteps; })) {
      for (TrialId member = 0; member < members_; ++member)
        if (experiment_.trials()[member].t < kSteps) step(member);
    }
    return *experiment_.best()->best;
  }

  const Experiment& experiment() const { return experiment_; }

 private:
  void begin(const Launch& launch) {
    sums_[launch.trial] = launch.checkpoint.empty() ? 0 : std::stod(launch.checkpoint);
    experiment_.started(launch.trial, Seconds(0));
  }
  void step(TrialId member) {
    const auto& trial = experiment_.trials()[member];
    sums_[member] += step_with(std::get<double>(trial.config[0].second.value()), trial.t + 1);
    const auto checkpoint = to_string(sums_[member]);
    const auto decision =
        experiment_.report(member, trial.t + 1, {{"q", sums_[member]}}, checkpoint, Seconds(0));
    if (std::holds_alternative<Exploit>(decision)) begin(experiment_.relaunch(member, Seconds(0)));
  }

  Experiment experiment_;
  std::size_t members_;
  std::map<TrialId, double> sums_;
};

TimedPoints two_points() {
  TimedPoints points{Eigen::MatrixXd(2, 1), Eigen::VectorXd(2)};
  points.x << 0.25, 0.75;
  points.t << 1, 4;
  return points;
}

TimeVaryingParameters some_parameters() {
  return {{Eigen::VectorXd::Constant(1, 4.0), 2.0, 0.1}, 0.19};
}

TimedPoints random_points(Eigen::Index n, Eigen::Index d, Random& random) {
  TimedPoints points{Eigen::MatrixXd(n, d), Eigen::VectorXd(n)};
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < d; ++j) points.x(i, j) = random.unit();
    points.t[i] = 10 * random.unit();
  }
  return points;
}

Configuration with_lr(double lr) { return {{"lr", lr}, {"kind", "a"}}; }
double lr_of(const Configuration& config) { return std::get<double>(config[0].second.value()); }

}  // namespace

TEST_CASE("the kernel of PB2 is a squared exponential that forgets (rule 3)", "[tune][pb2]") {
  const auto points = two_points();
  const auto kernel = time_varying_kernel(points, points, some_parameters());
  CHECK(kernel(0, 0) == Approx(2));
  // 2 * exp(-4 * 0.5^2 / 2) * 0.81^(3 / 2)
  CHECK(kernel(0, 1) == Approx(2 * std::exp(-0.5) * 0.729));
  CHECK(kernel(1, 0) == Approx(kernel(0, 1)));
}

TEST_CASE("the posterior of PB2 is that of the textbook", "[tune][pb2]") {
  // Rasmussen and Williams (2006), equations 2.25 and 2.26, by hand for two observations.
  const auto points = two_points();
  const auto parameters = some_parameters();
  const Eigen::Vector2d y(1, -0.5);
  const TimeVaryingPosterior posterior(points, y, {Eigen::MatrixXd(0, 1), Eigen::VectorXd(0)},
                                       parameters);
  const TimedPoints asked{Eigen::MatrixXd::Constant(1, 1, 0.5), Eigen::VectorXd::Constant(1, 5)};
  const Eigen::Vector2d toward = time_varying_kernel(points, asked, parameters);
  const double own = 2.1, cross = 2 * std::exp(-0.5) * 0.729,
               determinant = own * own - cross * cross;
  Eigen::Matrix2d inverse;
  inverse << own, -cross, -cross, own;
  inverse /= determinant;
  const auto moments = posterior.at(Eigen::VectorXd::Constant(1, 0.5), 5);
  CHECK(moments.mean == Approx(toward.dot(inverse * y)));
  CHECK(moments.variance == Approx(2 - toward.dot(inverse * toward)));

  SECTION("what is awaited takes away variance, and leaves the mean") {
    const TimeVaryingPosterior with(points, y, asked, parameters);
    const auto known = with.at(Eigen::VectorXd::Constant(1, 0.5), 5);
    CHECK(known.mean == Approx(moments.mean));
    CHECK(known.variance < 0.1);
    CHECK(moments.variance > 0.5);
  }
}

TEST_CASE("PB2's gradients are those of its functions", "[tune][pb2]") {
  Random random(4);
  const auto points = random_points(12, 2, random);
  Eigen::VectorXd y(12);
  for (auto& each : y) each = random.unit() - 0.5;
  TimeVaryingParameters parameters{{Eigen::Vector2d(3, 0.7), 1.4, 0.05}, 0.3};
  constexpr double kStep = 1e-6;

  SECTION("of the posterior density by the parameters") {
    Eigen::VectorXd gradient, ignored;
    log_posterior(points, y, parameters, gradient);
    for (Eigen::Index i = 0; i < 5; ++i) {
      const auto at = [&](double step) {
        auto moved = parameters;
        if (i < 2) moved.gp.inverse_squared_lengths[i] *= std::exp(step);
        if (i == 2) moved.gp.scale *= std::exp(step);
        if (i == 3)
          moved.gp.noise =
              kLeastImprovementNoise + (moved.gp.noise - kLeastImprovementNoise) * std::exp(step);
        if (i == 4)
          moved.omega = 1 / (1 + (1 - parameters.omega) / parameters.omega * std::exp(-step));
        return log_posterior(points, y, moved, ignored);
      };
      CAPTURE(i);
      CHECK(gradient[i] == Approx((at(kStep) - at(-kStep)) / (2 * kStep)).epsilon(1e-4));
    }
  }
  SECTION("of the upper bound by the configuration") {
    const TimeVaryingPosterior posterior(points, y, random_points(2, 2, random), parameters);
    Eigen::VectorXd gradient, ignored;
    const Eigen::Vector2d x(0.3, 0.6);
    const double bound = posterior.upper_bound(x, 11, 1.5, gradient);
    const auto moments = posterior.at(x, 11);
    CHECK(bound == Approx(moments.mean + 1.5 * std::sqrt(moments.variance)));
    for (Eigen::Index j = 0; j < 2; ++j) {
      Eigen::Vector2d up = x, down = x;
      up[j] += kStep;
      down[j] -= kStep;
      const double slope = (posterior.upper_bound(up, 11, 1.5, ignored) -
                            posterior.upper_bound(down, 11, 1.5, ignored)) /
                           (2 * kStep);
      CHECK(gradient[j] == Approx(slope).epsilon(1e-4));
    }
  }
}

TEST_CASE("the highest upper bound is as high as a fine grid's", "[tune][pb2]") {
  Random random(9);
  const auto points = random_points(15, 2, random);
  Eigen::VectorXd y(15), ignored;
  for (auto& each : y) each = random.unit() - 0.5;
  const TimeVaryingPosterior posterior(points, y, random_points(3, 2, random),
                                       {{Eigen::Vector2d(20, 8), 1, 0.01}, 0.1});
  double highest = -1e300;
  for (int i = 0; i <= 100; ++i)
    for (int j = 0; j <= 100; ++j)
      highest = std::max(
          highest, posterior.upper_bound(Eigen::Vector2d(i / 100.0, j / 100.0), 9, 1, ignored));
  const auto found = highest_upper_bound(posterior, 9, 1, points.x, random);
  CHECK((found.minCoeff() >= 0 && found.maxCoeff() <= 1));
  CHECK(posterior.upper_bound(found, 9, 1, ignored) >= highest - 1e-9);
}

TEST_CASE("where old observations mislead, more is fitted to be forgotten", "[tune][pb2]") {
  Random random(6);
  const auto omega_where = [&](double drift) {
    auto points = random_points(60, 1, random);
    Eigen::VectorXd y(60);
    for (Eigen::Index i = 0; i < 60; ++i) y[i] = std::sin(6 * points.x(i, 0) + drift * points.t[i]);
    return fitted(points, y, default_time_varying(1)).omega;
  };
  const double drifting = omega_where(1.5), constant = omega_where(0);
  CAPTURE(drifting, constant);
  CHECK(constant < 0.02);
  CHECK(drifting > 10 * constant);
}

TEST_CASE("PB2 follows a learning rate whose best value changes, and PBT does not",
          "[tune][pb2][quality]") {
  // [pb2]
  const auto scheduler = tune::pb2({.interval = 3, .mutate = {{"lr", tune::loguniform(1e-4, 1)}}});
  // [/pb2]
  constexpr std::uint64_t kSeeds = 30;
  std::vector<double> bandit, factors;
  int wins = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    bandit.push_back(Drifting(scheduler, 4, seed).run());
    factors.push_back(Drifting(pbt({.interval = 3, .mutate = kLr}), 4, seed).run());
    wins += bandit.back() > factors.back() ? 1 : 0;
  }
  std::ranges::sort(bandit);
  std::ranges::sort(factors);
  const double pb2_median = bandit[kSeeds / 2], pbt_median = factors[kSeeds / 2];
  CAPTURE(pb2_median, pbt_median, wins);
  CHECK(pb2_median > 1.15 * pbt_median);
  CHECK(wins >= 20);
}

TEST_CASE("a population of PB2 is a function of its seed", "[tune][pb2]") {
  const auto state = [](std::uint64_t seed) {
    Drifting population(pb2({.interval = 3, .mutate = kLr}), 4, seed);
    population.run();
    return population.experiment().save();
  };
  CHECK(state(3) == state(3));
  CHECK_FALSE(state(3) == state(4));
}

TEST_CASE("PB2 chooses ranges inside their bounds, and changes the others as PBT does (rules 2, 6)",
          "[tune][pb2]") {
  const SearchSpace mutate{{"lr", loguniform(1e-4, 1)},
                           {"kind", ordinal({"a", "b", "c"})},
                           {"layers", integer(2, 6)},
                           {"epochs", 7}};
  const auto explorer = bandit_explorer({.interval = 2, .resample = 0, .mutate = mutate}, 1);
  std::map<std::string, int> kinds;
  for (std::int64_t t = 2; t < 40; t += 2) {
    const Configuration donor{
        {"lr", 5.0}, {"kind", "b"}, {"layers", 9}, {"epochs", 1}, {"other", 0.5}};
    for (TrialId trial = 0; trial < 3; ++trial) {
      explorer->on_report(trial, t, static_cast<double>(t));
      explorer->on_judged(trial, donor, t, static_cast<double>(t));
    }
    const auto changed = explorer->explored(0, {donor, t, 1}, static_cast<std::uint64_t>(t));
    REQUIRE(changed.size() == 5);
    CHECK(mutate[0].domain.contains(changed[0].second));
    ++kinds[to_string(changed[1].second)];
    CHECK(mutate[2].domain.contains(changed[2].second));
    CHECK(changed[3].second == Scalar(7));
    CHECK(changed[4].second == Scalar(0.5));
  }
  CHECK(kinds.size() == 2);  // a neighbour of b, as by pbt with resample 0
  CHECK(kinds.count("b") == 0);
}

TEST_CASE("what PB2 learns is the improvement of each interval with its configuration (rule 1)",
          "[tune][pb2]") {
  const auto explorer = bandit_explorer({.interval = 2, .mutate = kLr}, 1);
  const auto intervals = [&] { return explorer->save().at("intervals"); };
  explorer->on_report(0, 1, 10);
  explorer->on_report(0, 2, 11);
  explorer->on_judged(0, with_lr(0.1), 2, 11);  // since its first report
  REQUIRE(intervals().size() == 1);
  CHECK(intervals()[0].at("improvement") == 1.0);
  CHECK(intervals()[0].at("t") == 0.5);
  CHECK(intervals()[0].at("x").at(0).get<double>() == Approx(0.75));
  explorer->on_judged(0, with_lr(0.1), 6, 3);
  CHECK(intervals()[1].at("improvement") == -2.0);

  const auto chosen = explorer->explored(0, {with_lr(0.1), 8, 20}, 0);  // from a donor's t=8
  explorer->on_report(0, 9, 23);
  explorer->on_judged(0, chosen, 10, 26);
  CHECK(intervals()[2].at("improvement") == 3.0);
  CHECK(intervals()[2].at("t") == 4.0);

  const auto minus_infinity = -std::numeric_limits<double>::infinity();
  explorer->on_judged(0, chosen, 12, minus_infinity);
  explorer->on_judged(0, chosen, 14, 30);  // nothing to begin from
  CHECK(intervals().size() == 3);
  explorer->forget(0);
  explorer->on_judged(0, chosen, 16, 31);
  CHECK(intervals().size() == 3);
  explorer->on_judged(0, chosen, 18, 32);
  CHECK(intervals().size() == 4);
}

TEST_CASE("what diverges teaches PB2 nothing, and its choice stays inside of its bounds",
          "[tune][pb2]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    const auto explorer = bandit_explorer({.interval = 1, .mutate = kLr}, 1);
    for (std::int64_t t = 1; t <= 6; ++t) {
      for (TrialId trial = 0; trial < 4; ++trial) {
        const double score =
            trial == 3 && t % 2 == 0 ? bad : static_cast<double>(t) / (1.0 + trial);
        explorer->on_report(trial, t, score);
        explorer->on_judged(trial, with_lr(std::pow(10, -1.0 - trial)), t, score);
      }
    }
    const auto intervals = explorer->save().at("intervals");
    CHECK(intervals.size() == 3 * 5);
    for (const auto& interval : intervals) {
      REQUIRE(interval.at("improvement").is_number());
      CHECK(interval.at("improvement").get<double>() > 0);
    }
    for (const double donor : {6.0, bad}) {
      const auto chosen = explorer->explored(3, {with_lr(0.1), 6, donor}, 1);
      CHECK(kLr[0].domain.contains(chosen[0].second));
    }
  }
}

TEST_CASE("PB2 knows the last intervals alone", "[tune][pb2]") {
  const auto explorer = bandit_explorer({.interval = 1, .mutate = kLr, .known = 10}, 1);
  for (std::int64_t t = 1; t <= 30; ++t) explorer->on_judged(0, with_lr(0.1), t, 0);
  REQUIRE(explorer->save().at("intervals").size() == 10);
  CHECK(explorer->save().at("intervals")[0].at("t") == 20.0);
}

TEST_CASE("members that choose at one time choose differently (rule 4)", "[tune][pb2]") {
  const auto chosen_by_two = [](bool is_first_forgotten) {
    const auto explorer = bandit_explorer({.interval = 1, .mutate = kLr}, 1);
    for (std::int64_t t = 1; t <= 3; ++t)
      for (TrialId trial = 0; trial < 4; ++trial)
        explorer->on_judged(trial, with_lr(std::pow(10, -0.9 * static_cast<double>(trial))), t,
                            static_cast<double>(t * (trial == 2 ? 3 : 1)));
    std::vector<double> logs;
    for (TrialId trial = 4; trial < 6; ++trial) {
      logs.push_back(std::log10(lr_of(explorer->explored(trial, {with_lr(0.1), 3, 0}, trial))));
      if (is_first_forgotten) explorer->forget(trial);
    }
    return logs;
  };
  const auto logs = chosen_by_two(false), alone = chosen_by_two(true);
  CAPTURE(logs[0], logs[1], alone[0], alone[1]);
  for (const double each : logs) CHECK(std::abs(each + 1.8) < 0.9);  // around the best one
  CHECK(std::abs(alone[0] - alone[1]) < 0.01);
  CHECK(std::abs(logs[0] - logs[1]) > 0.05);
}

TEST_CASE("the state of a PB2 population is taken up whole, and another's is refused",
          "[tune][pb2]") {
  const auto factory = pb2({.interval = 3, .mutate = kLr});
  Drifting population(factory, 4, 2);
  population.run();
  const auto saved = population.experiment().scheduler().save();
  const auto loaded = factory({"q", Max}, 2);
  CHECK_FALSE(loaded->save() == saved);
  loaded->load(saved);
  CHECK(loaded->save() == saved);

  CHECK_THROWS_WITH(pb2({.interval = 3, .mutate = kLr, .known = 50})({"q", Max}, 2)->load(saved),
                    Catch::Contains(R"(explorer is {"known":200} there, {"known":50} here)"));
  CHECK_THROWS_WITH(pbt({.interval = 3, .mutate = kLr})({"q", Max}, 2)->load(saved),
                    Catch::Contains(R"(scheduler is "pb2" there, "pbt" here)"));
  auto broken = saved;
  broken.replace(broken.find("\"omega\""), 7, "\"agemo\"");
  CHECK_THROWS_AS(loaded->load(broken), std::invalid_argument);
  CHECK(loaded->save() == saved);
}

TEST_CASE("options of PB2 that can not be are refused with what is wrong", "[tune][pb2]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(pb2({.mutate = kLr}), Contains("pb2: interval is 0"));
  CHECK_THROWS_WITH(pb2({.interval = 1}), Contains("pb2: mutate is empty"));
  CHECK_THROWS_WITH(pb2({.interval = 1, .mutate = kLr, .known = 9}),
                    "pb2: known is 9, at least 10");
  CHECK_THROWS_WITH(pb2({.interval = 1, .mutate = {kLr[0], {"x", normal(0, 1)}}}),
                    Contains("pb2: field 'x' is normal(0, 1), which has no bounds"));
  CHECK_THROWS_WITH(pb2({.interval = 1, .mutate = {{"kind", choice({"a", "b"})}}}),
                    Contains("no field of mutate is a range") && Contains("take pbt"));
  CHECK_THROWS_WITH(pb2({.interval = 1, .mutate = {{"lr", uniform(1, 1)}}}),
                    Contains("'lr' has a single value"));
}

}  // namespace pb2_test
