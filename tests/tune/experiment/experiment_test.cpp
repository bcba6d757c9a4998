#include <troupe/tune/experiment.hpp>

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "support/scheduler.hpp"

namespace experiment_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

Experiment search_for(std::uint64_t trials, ExperimentOptions options = {}) {
  options.objective = {"loss", Min};
  return {options, std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, trials),
          asha({.max_t = 9, .eta = 3})(options.objective, 1)};
}

TrialId launched(Experiment& experiment) {
  const auto next = experiment.next(Seconds(0));
  REQUIRE(std::holds_alternative<Launch>(next));
  const auto trial = std::get<Launch>(next).trial;
  experiment.started(trial, Seconds(0));
  return trial;
}

Decision reported(Experiment& experiment, TrialId trial, std::int64_t t, double loss) {
  return experiment.report(trial, t, {{"epoch", t}, {"loss", loss}}, {}, Seconds(1));
}

}  // namespace

TEST_CASE("an experiment hands out trials, waits for those in flight, and is done",
          "[tune][experiment]") {
  auto experiment = search_for(2);
  const auto first = launched(experiment), second = launched(experiment);
  CHECK(std::holds_alternative<Wait>(experiment.next(Seconds(1))));
  reported(experiment, first, 1, 0.5);
  experiment.ended(first, Seconds(2));
  CHECK(std::holds_alternative<Wait>(experiment.next(Seconds(2))));
  reported(experiment, second, 1, 0.4);
  experiment.ended(second, Seconds(3));
  CHECK(std::holds_alternative<Done>(experiment.next(Seconds(3))));
  CHECK(experiment.best()->id == second);
}

TEST_CASE("a trial's value is the best of its finite reports", "[tune][experiment]") {
  auto experiment = search_for(3);
  const auto trial = launched(experiment);
  reported(experiment, trial, 1, 0.5);
  reported(experiment, trial, 2, 0.2);
  reported(experiment, trial, 4, std::numeric_limits<double>::quiet_NaN());
  CHECK(experiment.trials()[trial].best == 0.2);
  CHECK(experiment.trials()[trial].best_t == 2);
  CHECK(experiment.best()->id == trial);
}

TEST_CASE("a trial's best checkpoint is its best report's, or the last one before it",
          "[tune][experiment][checkpoint]") {
  const auto search = [] {
    ExperimentOptions options{.objective = {"loss", Min}};
    return Experiment(options,
                      std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 3),
                      fifo()(options.objective, 1));
  };
  auto experiment = search();
  const auto id = launched(experiment);
  const auto& trial = experiment.trials()[id];
  const auto report = [&](std::int64_t t, double loss, const std::string& checkpoint) {
    experiment.report(id, t, {{"loss", loss}}, checkpoint, Seconds(1));
  };
  report(1, 0.9, "");
  CHECK(trial.best_checkpoint.empty());
  report(2, 0.8, "c2");
  CHECK(trial.best_checkpoint == "c2");
  report(3, 0.8, "c3");  // as good: the first of equals is the best
  report(4, std::numeric_limits<double>::quiet_NaN(), "c4");
  CHECK(trial.best_checkpoint == "c2");
  CHECK(trial.best_checkpoint_t == 2);
  report(5, 0.1, "");  // the best one, and it has none
  report(6, 0.5, "c6");
  CHECK(trial.best_t == 5);
  CHECK(trial.best_checkpoint == "c4");
  CHECK(trial.best_checkpoint_t == 4);
  CHECK(trial.checkpoint == "c6");

  auto loaded = search();
  loaded.load(experiment.save());
  CHECK(loaded.trials()[id].best_checkpoint == "c4");
  CHECK(loaded.trials()[id].best_checkpoint_t == 4);
  report(7, 0.6, "c4");  // written over
  CHECK(trial.best_checkpoint_t == 7);
}

TEST_CASE("a trial that never reports the metric is errored and told what it did report",
          "[tune][experiment]") {
  auto experiment = search_for(2);
  const auto silent = launched(experiment), misspelt = launched(experiment);
  experiment.ended(silent, Seconds(1));
  CHECK(experiment.trials()[silent].status == Status::Errored);
  CHECK(experiment.trials()[silent].error ==
        "it returned without a report; call ctx.report with 'loss'");
  auto programs = search_for(1, {.of_programs = true});
  const auto mute = launched(programs);
  programs.ended(mute, Seconds(1));
  CHECK(programs.trials()[mute].error ==
        R"(it ended without a report; print a line `troupe: {"loss": 0.5}`)");

  const auto decision =
      experiment.report(misspelt, 1, {{"epoch", 1}, {"los", 0.1}}, {}, Seconds(1));
  CHECK(goes_on(decision));
  CHECK(why_of(decision) == "the report has no 'loss'; it has epoch, los");
  experiment.ended(misspelt, Seconds(1));
  CHECK(experiment.trials()[misspelt].error ==
        "it never reported 'loss'; its reports have epoch, los");
  CHECK(experiment.best() == nullptr);
}

TEST_CASE("a trial whose every report was nan is no error, and not the best",
          "[tune][experiment]") {
  auto experiment = search_for(1);
  const auto trial = launched(experiment);
  CHECK(stops(reported(experiment, trial, 1, std::numeric_limits<double>::quiet_NaN())));
  experiment.ended(trial, Seconds(1));
  CHECK(experiment.trials()[trial].status == Status::Stopped);
  CHECK(experiment.trials()[trial].reason == "stopped at rung 0 (t=1): loss is nan");
  CHECK(experiment.best() == nullptr);
}

TEST_CASE("a trial that reported the metric has done so, whatever its value and its later reports",
          "[tune][experiment]") {
  const bool is_loaded = GENERATE(false, true);
  const double value = GENERATE(0.5, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity());
  CAPTURE(is_loaded, value);
  const auto make = [] {
    const Objective loss{"loss", Min};
    return Experiment({.objective = loss},
                      std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 1),
                      fifo()(loss, 1));
  };
  auto experiment = make();
  const auto trial = launched(experiment);
  reported(experiment, trial, 1, value);
  for (const int t : {2, 3}) experiment.report(trial, t, {{"seconds", 0.5}}, {}, Seconds(t));
  auto loaded = make();
  loaded.load(experiment.save());
  auto& last = is_loaded ? loaded : experiment;
  last.ended(trial, Seconds(4));
  CHECK(last.trials()[trial].status == Status::Terminated);
  CHECK(last.trials()[trial].error.empty());
  CHECK((last.best() != nullptr) == std::isfinite(value));
}

TEST_CASE("a repeated report is answered and leaves no event", "[tune][experiment]") {
  auto experiment = search_for(2, {.max_failures = 1});
  const auto trial = launched(experiment);
  reported(experiment, trial, 1, 0.5);
  reported(experiment, trial, 2, 0.4);
  experiment.failed(trial, "lost", Fault::Trial, Seconds(2));
  CHECK(launched(experiment) == trial);
  const auto before = experiment.save();
  int events = 0;
  experiment.observe([&](const Event&, const Trial*) { ++events; });

  CHECK(reported(experiment, trial, 1, 0.9) == Decision{});
  CHECK(reported(experiment, trial, 2, 0.9) == Decision{});

  CHECK(events == 0);
  CHECK(experiment.save() == before);
}

namespace {

ExperimentOptions two_objectives(std::int64_t all_reports) {
  return {.max_failures = 1,
          .stop = {.reaches = 0.01, .all_reports = all_reports},
          .objectives = {{"loss", Min}, {"epoch", Min}}};
}

/// That step t had the loss 1/t, five times, and that the run ended then.
void check_has_five_steps(const Trial& trial, const std::string& why_closed) {
  CHECK(trial.status == Status::Stopped);
  CHECK(trial.ended_with_run);
  CHECK(trial.reason == "the run ended: " + why_closed);
  CHECK(trial.error == "lost");
  CHECK(trial.t == 5);
  CHECK(Objective{"loss", Min}.value_in(trial.last) == 0.2);
  CHECK(trial.values == std::vector<double>{0.2, 5});
  CHECK(trial.values_t == 5);
  REQUIRE(trial.history.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(trial.history[i].t == static_cast<std::int64_t>(i) + 1);
    CHECK(trial.history[i].value == 1.0 / static_cast<double>(i + 1));
  }
}

}  // namespace

TEST_CASE(
    "a step that an earlier attempt reported keeps its value, whatever closes the run meanwhile",
    "[tune][experiment]") {
  const std::string closed_by = GENERATE("its user", "another's goal", "all reports");
  const bool fails = GENERATE(false, true);
  CAPTURE(closed_by, fails);
  const auto options = two_objectives(closed_by == "all reports" ? 6 : 0);
  auto experiment = search_for(2, options), loaded = search_for(2, options);
  std::vector<Event> events;
  experiment.observe([&](const Event& event, const Trial*) { events.push_back(event); });
  const auto trial = launched(experiment), other = launched(experiment);
  for (int t = 1; t <= 5; ++t) reported(experiment, trial, t, 1.0 / t);
  experiment.failed(trial, "lost", Fault::Trial, Seconds(2));
  REQUIRE(launched(experiment) == trial);
  CHECK(reported(experiment, trial, 1, 1.0) == Decision{});
  if (closed_by == "its user") experiment.close("enough", Seconds(3));
  if (closed_by == "another's goal") reported(experiment, other, 1, 0.001);
  if (closed_by == "all reports") reported(experiment, other, 1, 0.5);
  REQUIRE(experiment.closed());
  const auto why = experiment.why_closed();
  const auto so_far = events.size();
  const auto before = experiment.save();

  CHECK(reported(experiment, trial, 2, 0.5) == Decision{Stop{"the run ended: " + why, {}}});
  CHECK(events.size() == so_far);
  CHECK(experiment.save() == before);
  loaded.load(before);
  for (auto* each : {&experiment, &loaded}) {
    fails ? each->failed(trial, "killed", Fault::Trial, Seconds(4))
          : each->ended(trial, Seconds(4));
    check_has_five_steps(each->trials()[trial], why);
  }
  auto replayed = search_for(2, options);
  for (const auto& event : events) replayed.apply(event);
  CHECK(replayed.save() == experiment.save());
  CHECK(loaded.save() == experiment.save());
}

TEST_CASE("a trial that was told to stop and then dies has stopped, not failed",
          "[tune][experiment]") {
  auto experiment = search_for(3, {.max_failures = 5});
  const auto good = launched(experiment), bad = launched(experiment);
  reported(experiment, good, 1, 0.1);
  CHECK(stops(reported(experiment, bad, 1, 0.9)));
  CHECK(stops(reported(experiment, bad, 2, 0.9)));
  experiment.failed(bad, "killed by signal 9", Fault::Trial, Seconds(2));
  CHECK(experiment.trials()[bad].status == Status::Stopped);
  CHECK(experiment.trials()[bad].failures == 0);
}

TEST_CASE("a closed experiment launches nothing, stops every report and says why",
          "[tune][experiment]") {
  auto experiment = search_for(10, {.max_failures = 1});
  const auto running = launched(experiment), waiting = launched(experiment);
  experiment.failed(waiting, "lost", Fault::Trial, Seconds(1));

  experiment.close("enough", Seconds(1));

  CHECK(experiment.trials()[waiting].status == Status::Stopped);
  CHECK(why_of(reported(experiment, running, 1, 0.1)) == "the run ended: enough");
  CHECK(std::holds_alternative<Wait>(experiment.next(Seconds(2))));
  experiment.ended(running, Seconds(2));
  CHECK(experiment.trials()[running].status == Status::Stopped);
  for (const auto& trial : experiment.trials()) CHECK(trial.ended_with_run);
  CHECK(experiment.trials()[running].best == 0.1);
  CHECK(std::holds_alternative<Done>(experiment.next(Seconds(2))));
}

TEST_CASE("what ends with the run, or because it was told to, is nobody's fault",
          "[tune][experiment]") {
  auto experiment = search_for(10, {.stop = {.reports = 1}});
  std::vector<Fault> faults;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Failed) faults.push_back(event.fault);
  });
  const auto told = launched(experiment), running = launched(experiment),
             faulty = launched(experiment);
  experiment.failed(faulty, "no data", Fault::Trial, Seconds(1));
  CHECK(std::holds_alternative<Finish>(reported(experiment, told, 1, 0.1)));
  experiment.failed(told, "killed by signal 9", Fault::Trial, Seconds(1));
  experiment.close("ended by the user (SIGINT)", Seconds(1));
  experiment.failed(running, "killed by signal 9", Fault::System, Seconds(1));
  CHECK(faults == std::vector{Fault::Trial, Fault::Ended, Fault::Ended});
  CHECK(experiment.trials()[told].status == Status::Terminated);
  CHECK_FALSE(experiment.trials()[told].ended_with_run);
  CHECK(experiment.trials()[running].reason == "the run ended: ended by the user (SIGINT)");
  CHECK(experiment.trials()[running].failures + experiment.trials()[running].restarts == 0);
}

TEST_CASE("a checkpoint that is written over is told where others may go on from it",
          "[tune][experiment]") {
  const auto told = [](const SchedulerFactory& scheduler) {
    const Objective objective{"loss", Min};
    Experiment experiment(
        {.objective = objective},
        std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 2),
        scheduler(objective, 1));
    const auto trial = launched(experiment);
    experiment.report(trial, 1, {{"loss", 1}}, "latest", Seconds(1));
    experiment.report(trial, 2, {{"loss", 1}}, "latest", Seconds(1));
    experiment.report(trial, 3, {{"loss", 1}}, "latest", Seconds(1));
    return experiment.notices();
  };
  CHECK(told(fifo()).empty());
  const auto notices = told(pbt({.interval = 5, .mutate = {{"lr", uniform(0, 1)}}}));
  REQUIRE(notices.size() == 2);
  CHECK(notices.front().find("trial 0 reports the checkpoint latest of t=1 again at t=2") == 0);
}

TEST_CASE("options that can not be are refused", "[tune][experiment]") {
  const auto make = [](ExperimentOptions options) {
    return Experiment(options, std::make_unique<RandomSearcher>(SearchSpace{}, 1, 1),
                      fifo()({}, 1));
  };
  CHECK_THROWS_WITH(make({}), Catch::Contains(".metric is empty: name what the function reports") &&
                                  Catch::Contains(".metric = \"loss\""));
  CHECK_THROWS_WITH(make({.objective = {"loss"}, .max_failures = -1}),
                    "tune: max_failures is -1, at least 0");
  CHECK_THROWS_WITH(make({.objective = {"loss"}, .system_retries = -1}),
                    "tune: system_retries is -1, at least 0");
  CHECK_THROWS_WITH(make({.objective = {"loss"}, .stop = {.reports = -2}}),
                    "tune: stop.reports is -2, at least 0");
}

}  // namespace experiment_test
