#include "run/drive.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>
#include <troupe/tune/schedulers/asha.hpp>

#include "run/fake_launcher.hpp"

using namespace troupe;
using namespace troupe::tune;

namespace {

double quality(const Launch& launch) {
  return std::get<double>(launch.config.front().second.value());
}

/// Accuracy grows with t towards the trial's quality.
double curve(const Launch& launch, std::int64_t t) {
  return quality(launch) * (1 - 1 / static_cast<double>(1 + t));
}

Experiment search_for(std::uint64_t trials, ExperimentOptions options = {},
                      SchedulerFactory scheduler = asha({.max_t = 27, .eta = 3})) {
  options.objective = {"accuracy", Max};
  options.seed = 3;
  return {options,
          std::make_unique<RandomSearcher>(SearchSpace{{"quality", uniform(0, 1)}}, 3, trials),
          scheduler(options.objective, 3)};
}

std::size_t count(const Experiment& experiment, Status status) {
  return static_cast<std::size_t>(std::ranges::count(experiment.trials(), status, &Trial::status));
}

}  // namespace

TEST_CASE("ten thousand trials of ASHA find the best curve, and every stop has a reason",
          "[tune][drive]") {
  auto experiment = search_for(10'000);
  FakeLauncher cluster({.capacity = 64, .value = curve});

  drive(experiment, cluster, {}, {});

  CHECK(experiment.trials().size() == 10'000);
  CHECK(count(experiment, Status::Stopped) + count(experiment, Status::Terminated) == 10'000);
  CHECK(count(experiment, Status::Terminated) < 1'000);
  CHECK(cluster.most_running == 64);
  double best_possible = 0;
  for (const auto& trial : experiment.trials()) {
    best_possible = std::max(best_possible, std::get<double>(trial.config.front().second.value()));
    REQUIRE_FALSE(trial.reason.empty());
    REQUIRE_FALSE(trial.in_flight);
  }
  CHECK(std::get<double>(experiment.best()->config.front().second.value()) == best_possible);
  CHECK(experiment.best()->t == 27);
}

TEST_CASE("as many gangs are in flight as fit, or as many as asked for", "[tune][drive]") {
  auto unlimited = search_for(40), limited = search_for(40);
  FakeLauncher big({.capacity = 7, .value = curve}), same({.capacity = 7, .value = curve});

  drive(unlimited, big, {}, {});
  drive(limited, same, {.max_concurrent = 3}, {});

  CHECK(big.most_running == 7);
  CHECK(same.most_running == 3);
}

TEST_CASE("a trial that fails is tried again, and errored with its text after the last time",
          "[tune][drive]") {
  auto experiment = search_for(4, {.max_failures = 2}, fifo());
  FakeLauncher::Script script{.capacity = 2, .reports = 5, .value = curve};
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    if (launch.trial == 1 && launch.attempt <= 2 && t == 3) return "rank 1 was killed by signal 9";
    if (launch.trial == 2 && t == 2) return "std::runtime_error: no data";
    return std::nullopt;
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {}, {});

  const auto& trials = experiment.trials();
  CHECK(trials[0].status == Status::Terminated);
  CHECK(trials[1].status == Status::Terminated);
  CHECK(trials[1].failures == 2);
  CHECK(trials[1].t == 5);
  CHECK(trials[2].status == Status::Errored);
  CHECK(trials[2].failures == 3);
  CHECK(trials[2].error == "std::runtime_error: no data");
  CHECK(trials[3].status == Status::Terminated);
}

TEST_CASE("a trial that the cluster lost is started again without counting, and only so often",
          "[tune][drive]") {
  auto experiment = search_for(2, {.system_retries = 3}, fifo());
  FakeLauncher::Script script{.capacity = 2, .reports = 5, .value = curve, .fault = Fault::System};
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    if (launch.trial == 0 && launch.attempt <= 3 && t == 2) return "process 7 was lost with node 2";
    if (launch.trial == 1 && t == 1) return "worker process 9 did not start";
    return std::nullopt;
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {}, {});

  const auto& [saved, hopeless] = std::tie(experiment.trials()[0], experiment.trials()[1]);
  CHECK(saved.status == Status::Terminated);
  CHECK(saved.failures == 0);
  CHECK(saved.restarts == 3);
  CHECK(saved.restart_reason == "process 7 was lost with node 2");
  CHECK(saved.t == 5);
  CHECK(hopeless.status == Status::Errored);
  CHECK(hopeless.restarts == 3);
  CHECK(hopeless.failures == 1);
  CHECK(hopeless.error == "worker process 9 did not start");
}

TEST_CASE("an attempt after a failure goes on from the last checkpoint", "[tune][drive]") {
  auto experiment = search_for(1, {.max_failures = 1}, fifo());
  std::vector<std::string> began;
  experiment.observe([&](const Event& event, const Trial* trial) {
    if (event.kind == Event::Kind::Launched) began.push_back(trial->checkpoint);
  });
  FakeLauncher::Script script{.reports = 6, .value = curve, .checkpoints = true};
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    return launch.attempt == 1 && t == 4 ? std::optional<std::string>("lost") : std::nullopt;
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {}, {});

  CHECK(began == std::vector<std::string>{"", "checkpoints/0/3"});
  CHECK(experiment.trials()[0].t == 6);
  CHECK(cluster.now().count() == Approx(4 + 3));  // three steps, the fourth lost, three more
}

TEST_CASE("a run ends at its time budget and keeps what it has", "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 4, .reports = 10, .value = curve});

  drive(experiment, cluster, {.time_budget = Seconds(25)}, {});

  CHECK(experiment.why_closed() == "the time budget of 25.0 s is used up");
  CHECK(cluster.now().count() < 27);
  CHECK(experiment.best() != nullptr);
  CHECK(count(experiment, Status::Terminated) == 8);
  CHECK(count(experiment, Status::Stopped) == experiment.trials().size() - 8);
  CHECK(experiment.trials().size() <= 13);
}

TEST_CASE("an interrupt ends every gang at once", "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 4, .reports = 1'000, .value = curve});
  DriveHooks hooks;
  hooks.interrupted = [&]() -> std::optional<std::string> {
    return cluster.now() >= Seconds(7) ? std::optional<std::string>("ended by the user (SIGINT)")
                                       : std::nullopt;
  };

  drive(experiment, cluster, {}, hooks);

  CHECK(experiment.why_closed() == "ended by the user (SIGINT)");
  CHECK(cluster.now().count() == Approx(7).margin(1));
  CHECK(cluster.ended.size() == 5);  // four gangs, and the request for the next
  for (const auto& trial : experiment.trials())
    CHECK(trial.reason == "the run ended: ended by the user (SIGINT)");
}

TEST_CASE("the end of the cluster ends the run, and no trial is started again", "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 4, .reports = 1'000, .value = curve, .cluster_ends = 7});

  drive(experiment, cluster, {}, {});

  CHECK(experiment.why_closed() == "the cluster was stopped");
  CHECK(cluster.now().count() == Approx(7).margin(1));
  CHECK(experiment.best() != nullptr);
  CHECK(experiment.trials().size() == 5);
  for (const auto& trial : experiment.trials()) {
    CHECK(trial.status == Status::Stopped);
    CHECK(trial.restarts == 0);
  }
}

TEST_CASE("a trial that goes on after its stop is ended after the grace", "[tune][drive]") {
  auto experiment = search_for(3, {.stop = {.reports = 2}}, fifo());
  FakeLauncher cluster({.capacity = 1, .reports = 1'000'000, .value = curve, .deaf = true});

  drive(experiment, cluster, {.stop_grace = Seconds(5)}, {});

  CHECK(cluster.ended.size() == 3);
  CHECK(count(experiment, Status::Terminated) == 3);
  for (const auto& trial : experiment.trials()) CHECK(trial.reason == "made 2 reports");
}

TEST_CASE("a gang that can never be placed ends the run with the cluster's reason",
          "[tune][drive]") {
  auto experiment = search_for(5);
  FakeLauncher cluster({.impossible = true});

  CHECK_THROWS_AS(drive(experiment, cluster, {}, {}), Impossible);

  CHECK(experiment.why_closed() == "no node has gpu 8");
  CHECK(experiment.in_flight() == 0);
}

TEST_CASE("the run ends as soon as one trial is good enough", "[tune][drive]") {
  auto experiment = search_for(1'000, {.stop = {.reaches = 0.9}}, fifo());
  FakeLauncher cluster({.capacity = 2, .reports = 100, .value = curve});

  drive(experiment, cluster, {}, {});

  REQUIRE(experiment.best() != nullptr);
  CHECK(*experiment.best()->best >= 0.9);
  CHECK(experiment.best()->status == Status::Terminated);
  CHECK(experiment.why_closed().starts_with("trial "));
  CHECK(experiment.trials().size() < 100);
}

TEST_CASE("whatever fails and whenever, every trial comes to an end", "[tune][drive]") {
  const auto seed = GENERATE(range(1u, 26u));
  CAPTURE(seed);
  auto experiment = search_for(60, {.max_failures = static_cast<int>(seed % 3)});
  FakeLauncher::Script script{
      .capacity = 1 + seed % 5, .value = curve, .checkpoints = seed % 2 == 0};
  script.step = [seed](const Launch& launch) {
    return 0.1 + Random(seed, launch.trial, "step").unit();
  };
  script.failure = [seed](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const auto draw =
        Random(seed + static_cast<unsigned>(launch.attempt), launch.trial, std::to_string(t))
            .unit();
    return draw < 0.05 ? std::optional<std::string>("lost") : std::nullopt;
  };
  if (seed % 2 == 1) script.fault = Fault::System;
  script.value = [seed](const Launch& launch, std::int64_t t) {
    const bool diverges = Random(seed, launch.trial, "nan").unit() < 0.1;
    return diverges && t > 2 ? std::numeric_limits<double>::quiet_NaN() : curve(launch, t);
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {.time_budget = Seconds(seed % 4 == 0 ? 30 : 0)}, {});

  CHECK(experiment.in_flight() == 0);
  for (const auto& trial : experiment.trials()) {
    REQUIRE(trial.over());
    REQUIRE(trial.failures <= experiment.options().max_failures + 1);
    REQUIRE(trial.restarts <= experiment.options().system_retries);
    REQUIRE((trial.status == Status::Errored) ==
            (trial.failures > experiment.options().max_failures));
    if (trial.status == Status::Stopped) REQUIRE_FALSE(trial.reason.empty());
  }
}
