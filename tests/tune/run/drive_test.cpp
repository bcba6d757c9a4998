#include "run/drive.hpp"
#include "rounds.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>
#include <troupe/tune/schedulers/asha.hpp>

#include "run/accuracy_search.hpp"
#include "run/fake_launcher.hpp"

namespace drive_test {

using namespace troupe;
using namespace troupe::tune;
using namespace troupe::tune::accuracy_search;

TEST_CASE("ten thousand trials of ASHA find the best curve, and every stop has a reason",
          "[tune][drive]") {
  auto experiment = search_for(10'000);
  FakeLauncher cluster({.capacity = 64, .value = curve});

  CHECK_FALSE(drive(experiment, cluster, {}, {}));

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

TEST_CASE("gangs that end at the same time are replaced at the same time", "[tune][drive]") {
  const std::size_t most = GENERATE(0u, 4u);  // at once; 0: as many as fit
  CAPTURE(most);
  auto experiment = search_for(8, {}, fifo());
  FakeLauncher::Script script{.capacity = 4, .launch = 1, .reports = 1, .value = curve};
  // Gangs 0 to 3 are placed one after the other, at 1, 2, 3 and 4, and all end at 10.
  script.step = [](const Launch& launch) {
    return launch.trial < 4 ? 9 - static_cast<double>(launch.trial) : 1;
  };
  FakeLauncher cluster(script);
  std::vector<double> placed;
  cluster.seen = [&](const GangEvent& event) {
    if (event.kind == GangEvent::Kind::Placed) placed.push_back(cluster.now().count());
  };

  drive(experiment, cluster, {.max_concurrent = most}, {});

  CHECK(placed == std::vector<double>{1, 2, 3, 4, 11, 11, 11, 11});
  CHECK(cluster.now().count() == Approx(12));
  CHECK(cluster.most_running == 4);
}

TEST_CASE("no trials are chosen long ahead for places that went with a node", "[tune][drive]") {
  auto experiment = search_for(60, {.system_retries = 1}, fifo());
  FakeLauncher::Script script{.capacity = 6, .reports = 4, .value = curve, .fault = Fault::System};
  script.step = [](const Launch& launch) {
    return 1 + 0.1 * static_cast<double>(launch.trial % 7);
  };
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const bool is_lost = launch.trial < 4 && launch.attempt == 1 && t == 2;
    return is_lost ? std::optional<std::string>("lost with node 2") : std::nullopt;
  };
  FakeLauncher cluster(script);
  std::size_t most_waiting = 0, waiting_later = 0;
  cluster.seen = [&](const GangEvent& event) {
    if (event.kind == GangEvent::Kind::Failed) cluster.lose(1);
    most_waiting = std::max(most_waiting, cluster.waiting());
    if (cluster.now() > Seconds(20)) waiting_later = std::max(waiting_later, cluster.waiting());
  };

  drive(experiment, cluster, {}, {});

  CHECK(most_waiting > 1);  // those that were lost are asked for again at once
  CHECK(waiting_later == 1);
  CHECK(cluster.now() > Seconds(60));
  CHECK(count(experiment, Status::Terminated) == 60);
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

TEST_CASE("a trial that has not reported for long is named once for each attempt",
          "[tune][drive]") {
  auto experiment = search_for(3, {.max_failures = 1}, fifo());
  FakeLauncher::Script script{.capacity = 3, .reports = 4, .value = curve};
  script.step = [](const Launch& launch) {
    return launch.trial == 1 ? 100.0 : launch.trial == 2 ? 1e5 : 2.0;
  };
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const bool fails = launch.trial == 1 && launch.attempt == 1 && t == 1;
    return fails ? std::optional<std::string>("no data") : std::nullopt;
  };
  FakeLauncher cluster(script);
  std::vector<std::string> notices;
  std::vector<double> times;
  DriveHooks hooks;
  hooks.notice = [&](const std::string& notice) {
    notices.push_back(notice);
    times.push_back(cluster.now().count());
  };
  hooks.interrupted = [&] {
    return cluster.now() > Seconds(1500) ? std::optional<std::string>("enough") : std::nullopt;
  };

  drive(experiment, cluster, {.stop_grace = Seconds(1), .for_silent_trials = "; so it is"}, hooks);

  // Trial 0 reports every 2 s. The others are silent for a minute at 60; trial 1 begins again at
  // 100, and its next attempt is silent for a minute once more, and then makes its first report.
  REQUIRE(notices.size() == 3);
  CHECK(notices[0] ==
        "trial 1 has not reported for 60.0 s (before, a report took 2.0 s at most), and keeps its "
        "place; so it is");
  CHECK_THAT(notices[1], Catch::StartsWith("trial 2 has not reported for 60.0 s"));
  CHECK_THAT(notices[2], Catch::StartsWith("trial 1 has not reported for 60.0 s"));
  CHECK(times[1] < 61);
  CHECK(times[2] >= 160);
  CHECK(times[2] < 161);
}

TEST_CASE(
    "a trial that the cluster lost is started again without counting as often as it comes further",
    "[tune][drive]") {
  auto experiment = search_for(2, {.system_retries = 3}, fifo());
  FakeLauncher::Script script{.capacity = 2, .reports = 9, .value = curve, .fault = Fault::System};
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    // Three times in a row at the same place, and then once after each new report.
    const auto lost_at = std::max(2, launch.attempt - 1);
    if (launch.trial == 0 && launch.attempt <= 7 && t == lost_at)
      return "process 7 was lost with node 2";
    if (launch.trial == 1 && t == 1) return "worker process 9 did not start";
    return std::nullopt;
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {}, {});

  const auto& [saved, hopeless] = std::tie(experiment.trials()[0], experiment.trials()[1]);
  CHECK(saved.status == Status::Terminated);
  CHECK(saved.failures == 0);
  CHECK(saved.restarts == 7);
  CHECK(saved.restart_reason == "process 7 was lost with node 2");
  CHECK(saved.t == 9);
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

TEST_CASE("a gang that can never be placed ends the run with the cluster's reason",
          "[tune][drive]") {
  auto experiment = search_for(5);
  FakeLauncher cluster({.impossible = true});

  CHECK_THROWS_AS(drive(experiment, cluster, {}, {}), Impossible);

  CHECK(experiment.why_closed() == "no node has gpu 8");
  CHECK(experiment.in_flight() == 0);
}

TEST_CASE("a gang that can never be placed is named as the options ask for it", "[tune][drive]") {
  auto experiment = search_for(5);
  FakeLauncher cluster({.impossible = true});
  CHECK_THROWS_WITH(drive(experiment, cluster, {.gang = ".each.workers = 3"}, {}),
                    Catch::Contains("the cluster can never hold the gang of a trial (.each.workers "
                                    "= 3): no node has gpu 8. Ask for less there"));

  auto sized = search_for(2);
  FakeLauncher same({.impossible = true});
  drive(sized, same, {.sizes_differ = true}, {});
  CHECK(sized.trials().at(1).error ==
        "the cluster can never hold the gang that .sized gives for it: no node has gpu 8");
}

TEST_CASE("a run whose first trials all fail alike without a report is ended", "[tune][drive]") {
  FakeLauncher::Script script{.capacity = 2, .value = curve};
  const auto text = GENERATE("no such file", "");
  CAPTURE(text);
  script.failure = [=](const Launch& launch, auto) -> std::optional<std::string> {
    return *text ? text : "trial " + std::to_string(launch.trial) + " has no data";
  };
  auto experiment = search_for(40, {.max_failures = 1});
  FakeLauncher cluster(script);
  drive(experiment, cluster, {}, {});
  if (*text) {
    CHECK(experiment.why_closed() ==
          "the first 5 trials all failed without a report of 'accuracy', and alike: no such file");
    CHECK(count(experiment, Status::Errored) == 5);
  } else {
    CHECK(experiment.why_closed().empty());
    CHECK(count(experiment, Status::Errored) == 40);
  }
}

TEST_CASE("a run whose first trial still runs is not ended because later ones fail alike",
          "[tune][drive]") {
  const bool succeeds = GENERATE(true, false);
  CAPTURE(succeeds);
  FakeLauncher::Script script{.capacity = 2, .value = curve};
  script.step = [](const Launch& launch) { return launch.trial == 0 ? 20.5 : 1; };
  script.failure = [=](const Launch& launch, auto) -> std::optional<std::string> {
    if (launch.trial == 0 && succeeds) return std::nullopt;
    return "no such file";
  };
  auto experiment = search_for(40);
  FakeLauncher cluster(script);
  drive(experiment, cluster, {}, {});
  if (succeeds) {
    CHECK(experiment.why_closed().empty());
    CHECK(count(experiment, Status::Errored) == 39);
  } else {
    CHECK_THAT(experiment.why_closed(), Catch::StartsWith("the first 21 trials all failed"));
  }
}

TEST_CASE("a run whose first processes all end in one way is ended, whatever they print",
          "[tune][drive]") {
  const std::string process = GENERATE("process ", "rank 1 is gone: process ");
  FakeLauncher::Script script{.capacity = 2, .value = curve};
  script.failure = [=](const Launch& launch, auto) -> std::optional<std::string> {
    const auto trial = std::to_string(launch.trial);
    return process + trial + " (pid 47" + trial + ") was killed by signal 11 (Segmentation fault)" +
           "; its log, " + trial + ".log, ends with: 'trial " + trial + "' (node 1)";
  };
  auto experiment = search_for(40);
  FakeLauncher cluster(script);
  drive(experiment, cluster, {}, {});
  CHECK(experiment.why_closed() ==
        "the first 5 trials all failed without a report of 'accuracy', and alike: was killed by "
        "signal 11 (Segmentation fault)");
  CHECK(count(experiment, Status::Errored) == 5);
}

TEST_CASE("a trial whose gang is placed once the run has ended does not start", "[tune][drive]") {
  FakeLauncher::Script script{.capacity = 1, .value = curve};
  script.failure = [](auto&, auto) { return std::optional<std::string>("no such file"); };
  auto experiment = search_for(40);
  FakeLauncher cluster(script);
  std::vector<TrialId> placed;
  cluster.seen = [&](const GangEvent& event) {
    if (event.kind == GangEvent::Kind::Placed) placed.push_back(event.trial);
  };
  drive(experiment, cluster, {}, {});
  CHECK(count(experiment, Status::Errored) == 5);
  REQUIRE(placed == std::vector<TrialId>{0, 1, 2, 3, 4, 5});
  CHECK(experiment.trials()[5].is_unstarted());
  CHECK(cluster.ended.contains(5));
}

TEST_CASE("a run that is gone on with counts what its trials reported before", "[tune][drive]") {
  const bool has_reported = GENERATE(true, false);
  auto experiment = search_for(40, {}, fifo());
  experiment.next(Seconds(0));
  experiment.started(0, Seconds(0));
  const auto* metric = has_reported ? "accuracy" : "seconds";
  experiment.report(0, 1, {{metric, std::numeric_limits<double>::quiet_NaN()}}, {}, Seconds(1));
  experiment.failed(0, "no such file", Fault::Final, Seconds(1));
  FakeLauncher::Script script{.capacity = 2, .value = curve};
  script.failure = [](const Launch&, auto) { return std::optional<std::string>("no such file"); };
  FakeLauncher cluster(script);
  drive(experiment, cluster, {}, {});
  CHECK(experiment.why_closed().empty() == has_reported);
  CHECK(count(experiment, Status::Errored) == (has_reported ? 40 : 6));
}

TEST_CASE("a run whose first trials all report another metric is ended", "[tune][drive]") {
  auto experiment = search_for(40);
  FakeLauncher cluster({.metric = "acuracy"});
  drive(experiment, cluster, {}, {});
  CHECK(experiment.why_closed() ==
        "the first 5 trials all failed without a report of 'accuracy', and alike: it never "
        "reported 'accuracy'; its reports have acuracy");
  CHECK(count(experiment, Status::Errored) == 5);
}

TEST_CASE("a run goes on after failures once a trial has reported", "[tune][drive]") {
  FakeLauncher::Script script{.value = curve};
  script.failure = [](const Launch& launch, auto) -> std::optional<std::string> {
    return launch.trial == 3 ? std::nullopt : std::optional<std::string>("no such file");
  };
  auto experiment = search_for(40);
  FakeLauncher cluster(script);
  drive(experiment, cluster, {}, {});
  CHECK(count(experiment, Status::Errored) == 39);

  auto small = search_for(3);  // and where none is left to try
  script.failure = [](auto&, auto) { return std::optional<std::string>("no such file"); };
  FakeLauncher same(script);
  drive(small, same, {}, {});
  CHECK(small.why_closed().empty());
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
  const auto seed = GENERATE(range(1u, 1 + troupe::test::rounds(25)));
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
    REQUIRE(trial.fruitless_restarts <= experiment.options().system_retries);
    REQUIRE((trial.status == Status::Errored) ==
            (trial.failures > experiment.options().max_failures));
    if (trial.status == Status::Stopped) REQUIRE_FALSE(trial.reason.empty());
  }
}

}  // namespace drive_test
