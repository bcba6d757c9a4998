// Trials that the end of the run stopped, or kept from beginning, are called so wherever they are shown.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>

#include "experiment/journal.hpp"
#include "output/html/html_report.hpp"
#include "output/overview.hpp"
#include "output/render.hpp"
#include "output/report_files.hpp"

namespace ending_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

Experiment search() {
  const Objective loss{"loss", Min};
  return {{.objective = loss, .max_failures = 1},
          std::make_unique<RandomSearcher>(SearchSpace{{"lr", 0.5}}, 1, 9),
          asha({.max_t = 9, .eta = 3})(loss, 1)};
}

/// What each trial is called at the end of end_early().
const std::vector<std::string> kEndings{"terminated", "stopped",   "unfinished", "unfinished",
                                        "errored",    "unstarted", "unfinished"};

/// A run of seven trials that ends while four are under way.
void end_early(Experiment& experiment) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto report = [&](TrialId trial, std::int64_t t, double loss) {
    return experiment.report(trial, t, {{"loss", loss}}, {}, Seconds(1));
  };
  for (TrialId trial = 0; trial < 7; ++trial) {
    experiment.next(Seconds(0));
    if (trial != 5) experiment.started(trial, Seconds(0));
  }
  report(0, 9, 0.1);
  experiment.ended(0, Seconds(1));
  report(1, 1, nan);  // the scheduler stops it, and it ends after the run
  experiment.failed(3, "no memory", Fault::Trial, Seconds(1));  // waits for its second attempt
  experiment.failed(4, "no data", Fault::Final, Seconds(1));
  experiment.close("enough", Seconds(2));
  report(2, 1, 0.3);  // stopped at its own report
  experiment.ended(1, Seconds(3));
  experiment.ended(2, Seconds(3));
  experiment.failed(5, "it was ended", Fault::System, Seconds(3));
  experiment.failed(6, "it was ended", Fault::System, Seconds(3));
}

std::vector<std::string> endings_of(const Experiment& experiment) {
  std::vector<std::string> endings;
  for (const auto& trial : experiment.trials()) endings.emplace_back(ending_of(trial));
  return endings;
}

std::vector<std::string> statuses_in(const Json& trials) {
  std::vector<std::string> statuses;
  for (const auto& trial : trials) statuses.push_back(trial.at("status"));
  return statuses;
}

}  // namespace

TEST_CASE("a trial that the end of the run stopped is unfinished, or unstarted, and not stopped",
          "[tune][endings]") {
  auto experiment = search(), replayed = search(), loaded = search();
  std::vector<Event> events;
  experiment.observe([&](const Event& event, const Trial*) { events.push_back(event); });
  end_early(experiment);
  CHECK(endings_of(experiment) == kEndings);
  for (const auto& event : events) replayed.apply(event);
  CHECK(endings_of(replayed) == kEndings);
  loaded.load(experiment.save());
  CHECK(endings_of(loaded) == kEndings);
}

TEST_CASE("a trial that goes on after its run is neither unfinished nor unstarted",
          "[tune][endings]") {
  auto experiment = search();
  experiment.next(Seconds(0));
  experiment.started(0, Seconds(0));
  experiment.close("enough", Seconds(1));
  experiment.report(0, 1, {{"loss", 0.5}}, {}, Seconds(2));
  CHECK(ending_of(experiment.trials()[0]) == "running");
}

TEST_CASE("the display counts trials by how they ended", "[tune][endings]") {
  auto experiment = search();
  end_early(experiment);
  const auto overview = overview_of(experiment, Seconds(3), 9);
  CHECK(overview.trials() == 7);
  CHECK_THAT(
      render_summary(overview, {}),
      Catch::Contains(
          "\n  1 terminated, 1 stopped, 1 errored, 3 unfinished, 1 unstarted; 2 not begun\n"));
  const auto table = render_table(overview, {.width = 120});
  CHECK_THAT(table, Catch::StartsWith("tune: min loss, 3.0 s, 7 trials: 1 terminated, 1 stopped, 1 "
                                      "errored, 3 unfinished, 1 unstarted\n"));
  CHECK_THAT(table, Catch::Contains("\n    5  unstarted   0") &&
                        Catch::Contains("\n    2  unfinished  1") &&
                        Catch::Contains("\n    1  stopped     1"));
}

TEST_CASE("the files and the report of a run call its trials as the display does",
          "[tune][endings]") {
  auto experiment = search();
  RunRecord record;
  experiment.observe([&](const Event& event, const Trial* trial) { record.see(event, trial); });
  end_early(experiment);
  const auto summary = Json::parse(summary_text(experiment, Seconds(3)));
  CHECK(statuses_in(summary.at("trials")) == kEndings);
  const auto report =
      report_data(experiment, SearchSpace{{"lr", 0.5}}, record, "run-1", Seconds(3));
  CHECK(statuses_in(report.at("trials")) == kEndings);
  CHECK(statuses_in(report.at("attempts")) == std::vector<std::string>{"terminated", "stopped",
                                                                       "unfinished", "errored",
                                                                       "errored", "unfinished"});
}

}  // namespace ending_test
