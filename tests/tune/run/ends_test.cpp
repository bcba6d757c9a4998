// How trials and runs end that do not end by themselves: the time budget, an interrupt, the end of the cluster, and what is
// told to end and does not.
#include <deque>
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "run/accuracy_search.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"
#include "support/scheduler.hpp"

namespace ends_test {

using namespace troupe;
using namespace troupe::tune;
using namespace troupe::tune::accuracy_search;

namespace {

/// Trials report once. One that is told to take over another begins only when it is ended for its
/// delay, at that very moment.
class LateLauncher final : public Launcher {
 public:
  void launch(const Launch& launch) override {
    events_.push_back({.kind = GangEvent::Kind::Placed, .trial = launch.trial});
    events_.push_back({.kind = GangEvent::Kind::Reported,
                       .trial = launch.trial,
                       .k = 1,
                       .metrics = {{"accuracy", 0.5}},
                       .checkpoint = "checkpoint"});
  }
  std::optional<GangEvent> wait(Seconds timeout) override {
    if (events_.empty()) now_ += timeout;
    if (events_.empty()) return std::nullopt;
    const auto event = events_.front();
    events_.pop_front();
    return event;
  }
  void answer(TrialId trial, std::int64_t, Verdict) override {
    events_.push_back({.kind = GangEvent::Kind::Ended, .trial = trial});
  }
  void replace(const Launch&, std::int64_t) override {}
  void end(TrialId trial) override {
    events_.push_back({.kind = GangEvent::Kind::Placed, .trial = trial});
    events_.push_back(
        {.kind = GangEvent::Kind::Failed, .trial = trial, .text = "killed", .fault = Fault::Trial});
  }
  Seconds now() const override { return now_; }

 private:
  std::deque<GangEvent> events_;
  Seconds now_{0};
};

}  // namespace

TEST_CASE("a trial that stays silent ends when its time is over", "[tune][drive]") {
  // How long a gang takes that is told to end; none: until it is ended, after the grace.
  const auto farewell = GENERATE(std::optional<double>(), std::optional<double>(0.5));
  CAPTURE(farewell.has_value());
  auto experiment =
      search_for(4, {.stop = {.reports = 5, .trial_time = std::chrono::seconds(10)}}, fifo());
  FakeLauncher::Script script{.capacity = 1, .value = curve, .farewell = farewell};
  script.step = [](const Launch& launch) {
    const double never = 1e9;
    return launch.trial == 1 ? never : launch.trial == 2 ? 4.0 : 1.0;
  };
  FakeLauncher cluster(script);
  std::vector<Event> overdue;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Overdue) overdue.push_back(event);
  });

  drive(experiment, cluster, {.stop_grace = Seconds(3)}, {});

  const auto& trials = experiment.trials();
  CHECK(trials[0].t == 5);
  CHECK(trials[1].status == Status::Errored);
  CHECK_THAT(trials[1].error, Catch::StartsWith("it has run for 10.") &&
                                  Catch::EndsWith("without a report of 'accuracy', and "
                                                  "stop.trial_time is 10.0 s"));
  CHECK(trials[1].failures == 0);
  CHECK(trials[2].status == Status::Terminated);
  CHECK(trials[2].t == 2);
  CHECK_THAT(trials[2].reason,
             Catch::StartsWith("has run for 10.") && Catch::EndsWith("without another report"));
  CHECK(trials[3].t == 5);
  REQUIRE(overdue.size() == 2);
  CHECK(overdue[0].trial == 1);
  CHECK(overdue[1].trial == 2);
  CHECK(cluster.told == std::set<TrialId>{1, 2});
  CHECK(cluster.ended == (farewell ? std::set<TrialId>{} : std::set<TrialId>{1, 2}));
  for (const auto id : {1, 2}) {
    const auto lasted =
        (trials[static_cast<std::size_t>(id)].ended - trials[static_cast<std::size_t>(id)].started)
            .count();
    CHECK(lasted > 10);
    CHECK(lasted < 10 + farewell.value_or(3) + 1);
  }
}

TEST_CASE("a trial that begins again late is not ended before it can report", "[tune][drive]") {
  auto experiment = search_for(1, {.stop = {.trial_time = std::chrono::seconds(10)}}, fifo());
  FakeLauncher::Script script{.capacity = 1, .value = curve, .fault = Fault::System};
  script.step = [](const Launch& launch) { return launch.attempt == 1 ? 9.5 : 4.0; };
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    return launch.attempt == 1 && t == 1 ? std::optional<std::string>("lost") : std::nullopt;
  };
  FakeLauncher cluster(script);

  drive(experiment, cluster, {.stop_grace = Seconds(3)}, {});

  const auto& trial = experiment.trials()[0];
  CHECK(trial.status == Status::Terminated);
  CHECK(trial.t == 1);
  CHECK(trial.reason == "has run for 13.5 s");
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

TEST_CASE("an interrupt tells trials to end, waits for them, and ends those that do not",
          "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  const auto farewell = GENERATE(std::optional<double>(3), std::optional<double>());
  FakeLauncher cluster({.capacity = 4, .reports = 1'000, .value = curve, .farewell = farewell});
  DriveHooks hooks;
  hooks.interrupted = [&]() -> std::optional<std::string> {
    return cluster.now() >= Seconds(7) ? std::optional<std::string>("ended by the user (SIGINT)")
                                       : std::nullopt;
  };
  std::vector<std::string> said;
  hooks.waits = [&](const std::string& what) { said.push_back(what); };

  // The grace of a trial that was told to stop has nothing to do with it.
  const auto stop_grace = GENERATE(1, 100);
  drive(
      experiment, cluster,
      {.stop_grace = Seconds(stop_grace), .end_grace = Seconds(5), .end_grace_text = "grace + 2 s"},
      hooks);

  CHECK(cluster.now().count() == Approx(7 + farewell.value_or(5)).margin(0.5));
  CHECK(cluster.told.size() == 4);
  CHECK(cluster.ended.size() == (farewell ? 1 : 5));  // the request for the next is taken back
  CHECK(said == std::vector<std::string>{
                    "4 trials were told to end with the run 2.0 s ago: 5.0 s "
                    "(grace + 2 s) after that they are killed; a second signal does it "
                    "now"});
  CHECK(experiment.why_closed() == "ended by the user (SIGINT)");
  for (const auto& trial : experiment.trials()) {
    CHECK(trial.status == Status::Stopped);
    CHECK(trial.ended_with_run);
    CHECK(trial.failures == 0);
    CHECK(trial.reason == "the run ended: ended by the user (SIGINT)");
  }
}

TEST_CASE("trials that make no report after the time budget are told to end, and then ended",
          "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 2, .value = curve, .step = [](auto&) { return 1'000.0; }});
  std::vector<std::string> said;
  DriveHooks hooks;
  hooks.waits = [&](const std::string& what) { said.push_back(what); };

  drive(experiment, cluster,
        {.time_budget = Seconds(10), .stop_grace = Seconds(4), .end_grace = Seconds(5)}, hooks);

  CHECK(cluster.now().count() == Approx(10 + 4 + 5).margin(1));
  CHECK(cluster.told.size() == 2);
  CHECK(cluster.ended.size() == 3);
  CHECK(said.size() == 2);
  CHECK_THAT(said.back(), Catch::EndsWith("5.0 s after that they are killed"));
  CHECK(count(experiment, Status::Stopped) == 3);
}

TEST_CASE(
    "a trial that only itself can end is waited for at the end of the run, which is said once",
    "[tune][drive]") {
  auto experiment = search_for(10, {}, fifo());
  FakeLauncher cluster({.value = curve, .step = [](auto&) { return 1'000.0; }, .in_process = true});
  std::vector<std::string> said;
  DriveHooks hooks;
  hooks.waits = [&](const std::string& what) { said.push_back(what); };

  drive(experiment, cluster, {.time_budget = Seconds(10), .stop_grace = Seconds(1)}, hooks);

  CHECK(cluster.now().count() == Approx(1'000).margin(1));
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Catch::StartsWith("the trial runs in this process, where nothing else"));
  CHECK(experiment.trials()[0].t == 1);
}

TEST_CASE("trials that are told to end are ended at once where their cluster ends",
          "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 4, .reports = 1'000, .value = curve, .cluster_ends = 9});
  DriveHooks hooks;
  hooks.interrupted = [&]() -> std::optional<std::string> {
    return cluster.now() >= Seconds(7) ? std::optional<std::string>("ended by the user (SIGINT)")
                                       : std::nullopt;
  };
  drive(experiment, cluster, {.end_grace = Seconds(100)}, hooks);
  CHECK(cluster.now().count() == Approx(9).margin(0.5));
  CHECK(experiment.why_closed() == "ended by the user (SIGINT)");
}

TEST_CASE("the end of the cluster ends the run, and no trial is started again", "[tune][drive]") {
  auto experiment = search_for(1'000, {}, fifo());
  FakeLauncher cluster({.capacity = 4, .reports = 1'000, .value = curve, .cluster_ends = 7});

  CHECK(drive(experiment, cluster, {}, {}));

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

  std::vector<std::string> said;
  DriveHooks hooks;
  hooks.waits = [&](const std::string& what) { said.push_back(what); };
  drive(experiment, cluster, {.stop_grace = Seconds(5), .stop_grace_text = ".stop_grace"}, hooks);

  CHECK(cluster.ended.size() == 3);
  CHECK(said ==
        std::vector<std::string>{"1 trial was told to end 2.0 s ago, and takes its time for it: "
                                 "5.0 s (.stop_grace) after that the gang is ended"});
  CHECK(count(experiment, Status::Terminated) == 3);
  for (const auto& trial : experiment.trials()) CHECK(trial.reason == "made 2 reports");
}

TEST_CASE(
    "a trial that is ended in the moment in which its next attempt begins after all has not failed",
    "[tune][drive]") {
  const Objective objective{"accuracy", Max};
  bool told = false;
  const auto script = [&](const Trial& trial, const Population&) -> Decision {
    if (trial.id == 0 || std::exchange(told, true)) return GoOn{};
    return Exploit{
        .donor = 0, .checkpoint = "checkpoint", .checkpoint_t = 1, .config = {{"lr", 0.5}}};
  };
  Experiment experiment({.objective = objective},
                        std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 2),
                        std::make_unique<ScriptedScheduler>(script));
  LateLauncher cluster;

  drive(experiment, cluster, {.max_concurrent = 1, .stop_grace = Seconds(2)}, {});

  const auto& trial = experiment.trials().at(1);
  CHECK(trial.takeovers.size() == 1);
  CHECK(trial.status == Status::Terminated);
  CHECK(trial.failures == 0);
  CHECK(trial.restarts == 1);
  CHECK(
      trial.restart_reason ==
      "its attempt that was to end had not, 2.0 s after it was told to; its processes were ended");
}

}  // namespace ends_test
