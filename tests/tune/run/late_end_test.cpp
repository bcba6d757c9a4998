#include <deque>

#include <catch2/catch.hpp>

#include "run/drive.hpp"
#include "support/scheduler.hpp"

namespace late_end_test {

using namespace troupe;
using namespace troupe::tune;

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

}  // namespace late_end_test
