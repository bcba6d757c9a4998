// When trials and runs end by what StopWhen says, in virtual time.
#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/simulate.hpp>

namespace stopping_test {

using namespace troupe::tune;
using namespace std::chrono_literals;

namespace {

/// A configuration is the number of a curve.
struct Row {
  std::int64_t row = 0;
};

/// Ten rows one after the other, each for a hundred reports where nothing ends it before.
template <class Curve>
Preview<Row> search(StopWhen stop, Curve curve) {
  std::vector<Scalar> rows;
  for (std::int64_t row = 0; row < 10; ++row) rows.emplace_back(row);
  return simulate<Row>(
      {.space = {{"row", grid(rows)}}, .metric = "loss", .mode = Min, .stop = std::move(stop)},
      {.curve = [&](const Row& row, std::int64_t t) {
        return curve(static_cast<double>(row.row), static_cast<double>(t));
      }});
}

/// The next one is asked for before there is room for it.
std::size_t begun(const Preview<Row>& preview) {
  return static_cast<std::size_t>(std::ranges::count_if(
      preview.results.trials(), [](const auto& each) { return each.trial.t > 0; }));
}

bool all_trained_to(const Preview<Row>& preview, std::int64_t t) {
  const auto& trials = preview.results.trials();
  return trials.size() == 10 && std::ranges::all_of(trials, [&](const auto& each) {
           return each.trial.t == t && each.trial.status == Status::Terminated;
         });
}

}  // namespace

TEST_CASE("a trial on a plateau finishes", "[tune][stop]") {
  const auto flat_from_5 = [](double, double t) { return 1 / std::min(t, 5.0); };
  const auto preview = search({.plateau = {.reports = 3}}, flat_from_5);
  CHECK(all_trained_to(preview, 5 + 3));
  CHECK(preview.results.trials()[0].trial.reason == "loss is no better than 3 reports ago");
  // From 1/4 to 1/5 is less than this.
  CHECK(all_trained_to(search({.plateau = {.reports = 3, .delta = 0.06}}, flat_from_5), 4 + 3));
  const auto nan = [](double, double) { return std::numeric_limits<double>::quiet_NaN(); };
  CHECK(search({.plateau = {.reports = 3}}, nan).results.trials()[0].trial.t == 4);
}

TEST_CASE("a trial finishes when its time is over", "[tune][stop]") {
  const auto preview = search({.trial_time = 10s}, [](double, double t) { return 1 / t; });
  CHECK(all_trained_to(preview, 10));
  CHECK(preview.results.trials()[3].trial.reason == "has run for 10.0 s");
}

TEST_CASE("a run ends when its budget of reports or of cost is used", "[tune][stop]") {
  const auto half = [](double, double) { return 0.5; };
  const auto counted = search({.all_reports = 250}, half);
  CHECK(counted.steps == 250);
  CHECK(counted.results.ended_early() == "its trials made 250 reports, as stop.all_reports says");
  CHECK(begun(counted) == 3);
  const auto paid = search({.cost = 120, .cost_metric = "loss"}, half);
  CHECK(paid.steps == 240);
  CHECK(paid.results.ended_early() == "its trials cost 120 of loss, as stop.cost says");
}

TEST_CASE("a budget of a metric that no trial reports is told", "[tune][stop]") {
  const auto half = [](double, double) { return 0.5; };
  const auto misspelt = search({.reports = 3, .cost = 2, .cost_metric = "lss"}, half);
  REQUIRE(misspelt.notices.size() == 1);
  CHECK(misspelt.notices[0] ==
        "stop.cost is 2, and 'lss' has added nothing to it yet; the last report of a trial that "
        "ended "
        "has loss");
  CHECK(misspelt.results.trials().size() == 10);
  CHECK(search({.reports = 3, .cost = 2, .cost_metric = "loss"}, half).notices.empty());
}

TEST_CASE("a run ends when its trials get no better", "[tune][stop]") {
  const auto third_is_best = [](double row, double) { return (row - 2) * (row - 2); };
  const auto preview = search({.reports = 1, .no_better_trials = 4}, third_is_best);
  CHECK(begun(preview) == 3 + 3);  // the best one's own end is the first of the four
  CHECK(preview.results.ended_early() ==
        "4 trials ended without a better one, as stop.no_better_trials says");
}

TEST_CASE("criteria that can not be are refused", "[tune][stop]") {
  const auto refused = [](StopWhen stop) {
    return [stop] { search(stop, [](double, double) { return 0.0; }); };
  };
  CHECK_THROWS_WITH(refused({.plateau = {.reports = -1}})(),
                    "tune: stop.plateau.reports is -1, at least 0");
  CHECK_THROWS_WITH(refused({.all_reports = -1})(), "tune: stop.all_reports is -1, at least 0");
  CHECK_THROWS_WITH(refused({.cost = 3})(), Catch::Contains("stop.cost_metric does not name"));
}

}  // namespace stopping_test
