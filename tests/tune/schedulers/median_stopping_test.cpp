#include <troupe/tune/schedulers/median_stopping.hpp>

#include <limits>

#include <catch2/catch.hpp>

#include "support/scheduler.hpp"

namespace median_stopping_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

MedianStopping max_score(MedianStoppingOptions options) { return {options, {"score", Max}}; }

Decision report(TrialScheduler& scheduler, TrialId id, std::int64_t t, double score) {
  return on_report(scheduler, id, t, {{"score", score}});
}

/// Trials 0, 1, ... that each report a value of their own `count` times, all of them in turn.
void run_side_by_side(TrialScheduler& scheduler, const std::vector<double>& values,
                      std::int64_t count) {
  for (std::int64_t t = 1; t <= count; ++t) {
    for (TrialId id = 0; id < values.size(); ++id)
      CHECK(goes_on(report(scheduler, id, t, values[id])));
  }
}

}  // namespace

TEST_CASE("a trial below the median of the others' averages is stopped, and says why",
          "[tune][median]") {
  auto rule = max_score({.grace = 1, .min_samples = 3});
  run_side_by_side(rule, {10, 10, 10}, 1);
  const auto stopped = report(rule, 3, 1, 9);
  CHECK(stops(stopped));
  CHECK(
      why_of(stopped) ==
      "stopped at t=1: its best score 9 is below the median 10 of the averages of 3 other trials");
  const auto equal = report(rule, 4, 1, 10);  // not strictly worse
  CHECK(goes_on(equal));
  CHECK(why_of(equal) ==
        "goes on at t=1: its best score 10 is not below the median 10 of the averages of 4 other "
        "trials");
  CHECK(why_of(report(rule, 4, 2, 10)) ==
        "not judged at t=2: 0 other trials came so far, and it takes 3");
}

TEST_CASE("the best value of a trial counts, and the average of the others until then",
          "[tune][median]") {
  auto rule = max_score({.grace = 1, .min_samples = 2});
  for (const TrialId other : {0, 1}) {
    CHECK(goes_on(report(rule, other, 1, 0)));
    CHECK(goes_on(report(rule, other, 2, 10)));   // 5 on average until 2
    CHECK(goes_on(report(rule, other, 3, 100)));  // which is after t=2
  }
  CHECK(goes_on(report(rule, 2, 1, 6)));
  CHECK(goes_on(report(rule, 2, 2, 1)));  // its best is 6
  CHECK(goes_on(report(rule, 3, 1, 0)));
  CHECK(stops(report(rule, 3, 2, 4)));
  CHECK(stops(report(rule, 2, 3, 6)));  // against (0 + 10 + 100) / 3
}

TEST_CASE("nobody is judged in the grace period, or with too few others", "[tune][median]") {
  auto rule = max_score({.grace = 3, .min_samples = 3});
  for (std::int64_t t = 1; t <= 5; ++t) {
    for (TrialId id = 0; id < 3; ++id) report(rule, id, t, 10);
  }
  CHECK(goes_on(report(rule, 3, 1, 1)));
  CHECK(goes_on(report(rule, 3, 2, 1)));
  CHECK(stops(report(rule, 3, 3, 1)));
  auto few = max_score({.grace = 1, .min_samples = 3});
  run_side_by_side(few, {10, 10}, 1);
  CHECK(goes_on(report(few, 2, 1, 1)));
}

TEST_CASE("values before the grace period count in no average", "[tune][median]") {
  auto rule = max_score({.grace = 2, .min_samples = 1});
  report(rule, 0, 1, 1000);
  report(rule, 0, 2, 10);
  report(rule, 1, 1, 0);
  CHECK(goes_on(report(rule, 1, 2, 10)));
}

TEST_CASE("a trial is judged at each interval only", "[tune][median]") {
  auto rule = max_score({.grace = 2, .min_samples = 1, .interval = 2});
  for (const auto& [t, value] : {std::pair{1, 10}, {2, 10}, {3, 40}, {4, 40}})
    report(rule, 0, t, value);
  CHECK(goes_on(report(rule, 1, 1, 1)));
  CHECK(stops(report(rule, 1, 2, 1)));
  CHECK(goes_on(report(rule, 2, 2, 10)));
  CHECK(goes_on(report(rule, 2, 3, 10)));  // below 25, the average until t=3
  CHECK(stops(report(rule, 2, 4, 10)));
  CHECK(stops(report(rule, 3, 3, 10)));  // the first one at or behind t=2
}

TEST_CASE("a value that is not finite stops its trial and is the worst average", "[tune][median]") {
  constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
  auto rule = max_score({.grace = 1, .min_samples = 1});
  CHECK(stops(report(rule, 0, 1, kNan)));
  CHECK(goes_on(report(rule, 1, 1, -1e9)));
}

TEST_CASE("a minimum is judged the other way round", "[tune][median]") {
  MedianStopping rule({.grace = 1, .min_samples = 1}, {"score", Min});
  CHECK(goes_on(report(rule, 0, 1, 1)));
  const auto stopped = report(rule, 1, 1, 2);
  CHECK(why_of(stopped) ==
        "stopped at t=1: its best score 2 is above the median 1 of the averages of 1 other trial");
}

TEST_CASE("median stopping goes on from its saved state", "[tune][median]") {
  auto rule = max_score({.grace = 1, .min_samples = 2});
  run_side_by_side(rule, {10, 20}, 3);
  auto anew = max_score({.grace = 1, .min_samples = 2});
  anew.load(rule.save());
  CHECK(anew.save() == rule.save());
  CHECK(report(anew, 2, 1, 12) == report(rule, 2, 1, 12));
  CHECK_THROWS_WITH(max_score({.grace = 2}).load(rule.save()),
                    Catch::Contains("saved by another scheduler: grace is 1 there, 2 here"));
}

TEST_CASE("median stopping refuses options that make no sense", "[tune][median]") {
  CHECK_THROWS_WITH(median_stopping({.grace = 0}), Catch::Contains("grace=0"));
  CHECK_THROWS_WITH(median_stopping({.min_samples = 0}), Catch::Contains("min_samples=0"));
}

}  // namespace median_stopping_test
