// Which trial of a run is the best one.
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "objectives/best.hpp"
#include "output/html/html_report.hpp"
#include "output/overview.hpp"
#include "output/report_files.hpp"
#include "support/scheduler.hpp"
#include "text/json.hpp"

namespace best_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();

/// A search for the lowest loss whose trials nobody stops.
Experiment search(StopWhen stop = {}) {
  const Objective loss{"loss", Min};
  return {{.objective = loss, .stop = std::move(stop)},
          std::make_unique<RandomSearcher>(SearchSpace{{"lr", 0.5}}, 1, 9),
          fifo()(loss, 1)};
}

TrialId launched(Experiment& experiment) {
  const auto id = std::get<Launch>(experiment.next(Seconds(0))).trial;
  experiment.started(id, Seconds(0));
  return id;
}

void report(Experiment& experiment, TrialId trial, std::int64_t t, double loss) {
  experiment.report(trial, t, {{"loss", loss}}, {}, Seconds(1));
}

void fail(Experiment& experiment, TrialId trial) {
  experiment.failed(trial, "no memory", Fault::Final, Seconds(2));
}

/// Trials 0 and 1 reach 0.5, trial 1 first; trial 2 reaches 0.1.
void three_trials(Experiment& experiment) {
  for (int i = 0; i < 3; ++i) launched(experiment);
  report(experiment, 1, 1, 0.5);
  report(experiment, 0, 1, 0.5);
  report(experiment, 2, 1, 0.1);
}

struct Config {
  int index = 0;
};

/// What trial `index` reports, and whether it fails then.
struct Course {
  std::vector<double> losses = {};
  bool fails = false;
};
std::vector<Course> courses;

void train(tune::Context& ctx, const Config& config) {
  const auto& [losses, fails] = courses.at(static_cast<std::size_t>(config.index));
  for (const double loss : losses) ctx.report({{"loss", loss}});
  if (fails) throw std::runtime_error("no memory");
}

Results<Config> run_with(std::vector<Course> all) {
  courses = std::move(all);
  std::vector<Scalar> indices;
  for (std::size_t i = 0; i < courses.size(); ++i) indices.emplace_back(static_cast<int>(i));
  return tune::run<train>({.space = {{"index", grid(indices)}},
                           .metric = "loss",
                           .mode = Min,
                           .show = Show::None,
                           .in_process = true});
}

}  // namespace

TEST_CASE("a trial that fails is the best one no longer, and the best of the others is",
          "[tune][best]") {
  auto experiment = search(), replayed = search(), loaded = search();
  std::vector<Event> events;
  experiment.observe([&](const Event& event, const Trial*) { events.push_back(event); });
  three_trials(experiment);
  CHECK(experiment.best()->id == 2);
  fail(experiment, 2);
  REQUIRE(experiment.best());
  CHECK(experiment.best()->id == 0);
  for (const auto& event : events) replayed.apply(event);
  CHECK(replayed.best()->id == 0);
  CHECK(replayed.save() == experiment.save());
  loaded.load(experiment.save());
  CHECK(loaded.best()->id == 0);
  fail(experiment, 0);
  CHECK(experiment.best()->id == 1);
  fail(experiment, 1);
  CHECK(experiment.best() == nullptr);
}

TEST_CASE("of equal trials the one with the lowest id is the best", "[tune][best]") {
  auto experiment = search();
  three_trials(experiment);
  CHECK(best_of(experiment.trials(), {"loss", Max}) == TrialId{0});
  fail(experiment, 2);
  CHECK(experiment.best()->id == 0);
  auto late = search();
  for (int i = 0; i < 2; ++i) launched(late);
  report(late, 1, 1, 0.5);
  CHECK(late.best()->id == 1);
  report(late, 0, 1, 0.5);
  CHECK(late.best()->id == 0);
}

TEST_CASE("once the best trial fails, the trials count that ended since the next best reported",
          "[tune][best][stop]") {
  auto experiment = search({.no_better_trials = 3});
  const auto first = launched(experiment);
  report(experiment, first, 1, 0.5);
  experiment.ended(first, Seconds(1));
  const auto best = launched(experiment);
  report(experiment, best, 1, 0.1);
  for (int i = 0; i < 2; ++i) {
    const auto worse = launched(experiment);
    report(experiment, worse, 1, 0.7);
    experiment.ended(worse, Seconds(1));
  }
  CHECK_FALSE(experiment.closed());
  auto loaded = search({.no_better_trials = 3});
  loaded.load(experiment.save());
  for (auto* each : {&experiment, &loaded}) {
    fail(*each, best);
    CHECK(each->why_closed() ==
          "3 trials ended without a better one, as stop.no_better_trials says");
    CHECK(each->best()->id == first);
  }
}

TEST_CASE("of equal best trials one that fails takes its report with it, whichever it was",
          "[tune][best][stop]") {
  auto experiment = search({.no_better_trials = 3});
  const auto later = launched(experiment), first = launched(experiment);
  report(experiment, first, 1, 0.1);
  const auto end_one = [&] {
    const auto worse = launched(experiment);
    report(experiment, worse, 1, 0.7);
    experiment.ended(worse, Seconds(1));
  };
  end_one();
  end_one();
  report(experiment, later, 1, 0.1);
  CHECK(experiment.best()->id == later);
  fail(experiment, first);  // two had ended since its report, none since that of the other
  end_one();
  end_one();
  CHECK_FALSE(experiment.closed());
  end_one();
  CHECK(experiment.closed());
}

TEST_CASE("of the next best trials the first report counts", "[tune][best][stop]") {
  auto experiment = search({.no_better_trials = 3});
  const auto later = launched(experiment), first = launched(experiment);
  const auto best = launched(experiment);
  report(experiment, first, 1, 0.5);
  for (int i = 0; i < 2; ++i) {
    const auto worse = launched(experiment);
    report(experiment, worse, 1, 0.7);
    experiment.ended(worse, Seconds(1));
  }
  report(experiment, later, 1, 0.5);
  report(experiment, best, 1, 0.1);
  fail(experiment, best);
  CHECK(experiment.best()->id == later);
  CHECK_FALSE(experiment.closed());
  experiment.ended(later, Seconds(1));
  CHECK(experiment.closed());
}

TEST_CASE("a saved state that names a failed trial as the best one is taken up without it",
          "[tune][best]") {
  auto experiment = search(), loaded = search();
  three_trials(experiment);
  fail(experiment, 2);
  auto before = parse(experiment.save(), "a state");
  before["best"] = 2;
  before["progress"].erase(3);
  for (auto& trial : before["trials"]) trial.erase("ended_before_best");
  loaded.load(dump(before));
  REQUIRE(loaded.best());
  CHECK(loaded.best()->id == 0);
}

TEST_CASE("the display, the files and the report of a run name the same best trial",
          "[tune][best]") {
  auto experiment = search();
  three_trials(experiment);
  fail(experiment, 2);
  CHECK(overview_of(experiment, Seconds(3), 0).best->trial == 0);
  const auto summary = Json::parse(summary_text(experiment, Seconds(3)));
  CHECK(summary.at("best").at("trial") == 0);
  CHECK(report_data(experiment, {}, {}, "run-1", Seconds(3)).at("best") == 0);
  for (const TrialId trial : {0, 1}) fail(experiment, trial);
  const auto overview = overview_of(experiment, Seconds(3), 0);
  CHECK_FALSE(overview.best);
  CHECK(overview.have_all_failed);
}

TEST_CASE("best() leaves out trials that failed, unless it is asked for them", "[tune][best]") {
  const auto results =
      run_with({{{0.5, 0.4}}, {{0.1}, true}, {{0.3, kNan}}, {{kNan}}, {{}, true}, {{0.3, 0.6}}});
  CHECK(results.best().trial.id == 2);
  CHECK(results.best().value() == 0.3);
  CHECK(results.best({.scope = Scope::Last}).trial.id == 0);
  CHECK(results.best({.including_failed = true}).trial.id == 1);
  CHECK(results.best({.scope = Scope::Last, .including_failed = true}).trial.id == 1);
  CHECK_THAT(results.summary(), Catch::Contains("  best: trial 2, loss 0.3 at t=1\n"));
  std::vector<TrialId> front;
  for (const auto& each : results.pareto_front()) front.push_back(each.trial.id);
  CHECK(front == std::vector<TrialId>{2, 5});  // those that are as good as the best one
}

TEST_CASE("where each trial with a value failed, asking for the best says so and how to ask",
          "[tune][best]") {
  const auto results = run_with({{{0.5}, true}, {{0.1, kNan}, true}, {{kNan}}});
  CHECK_THROWS_WITH(
      results.best(),
      Catch::StartsWith("no best trial: each trial that reported a finite 'loss' failed; trial 1 "
                        "is errored: ") &&
          Catch::Contains("no memory") &&
          Catch::EndsWith(". Ask best({.including_failed = true}) for the best of these"));
  CHECK_THROWS_WITH(results.schedule(), Catch::StartsWith("no best trial: each trial that"));
  CHECK_THROWS_WITH(
      results.best({.scope = Scope::Last}),
      Catch::StartsWith("no best trial: each trial whose last 'loss' is finite failed; trial 0 is "
                        "errored: ") &&
          Catch::EndsWith("best({.scope = tune::Scope::Last, .including_failed = true}) for the "
                          "best of these"));
  CHECK(results.best({.including_failed = true}).value() == 0.1);
  CHECK_THAT(results.summary(),
             Catch::Contains("  best: none; each trial that reported a finite 'loss' failed\n"));
  CHECK(results.pareto_front().empty());
}

TEST_CASE("where no last report is finite, asking for the best by it says so", "[tune][best]") {
  const auto results = run_with({{{0.5, kNan}}, {{kNan}}});
  CHECK(results.best().trial.id == 0);
  CHECK_THROWS_WITH(results.best({.scope = Scope::Last}),
                    "no best trial: the last 'loss' of no trial is finite; best() goes by the best "
                    "report of each");
}

}  // namespace best_test
