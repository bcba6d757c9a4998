#include <troupe/tune/schedulers/asha_promotion.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include <catch2/catch.hpp>

#include <troupe/tune/simulate.hpp>

#include "support/hand_made_trials.hpp"

namespace asha_promotion_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();

/// A configuration is the number of a curve.
struct Row {
  std::int64_t row = 0;
};

tune::Options<Row> rows(std::int64_t count, AshaOptions asha_options) {
  asha_options.promote = true;
  std::vector<Scalar> numbers;
  for (std::int64_t row = 0; row < count; ++row) numbers.emplace_back(row);
  return {.space = {{"row", grid(numbers)}},
          .metric = "loss",
          .mode = Min,
          .scheduler = asha(asha_options)};
}

/// How many trials made so many reports and no more.
std::size_t trained_to(const Preview<Row>& preview, std::int64_t t) {
  return static_cast<std::size_t>(std::ranges::count(
      preview.results.trials(), t, [](const auto& result) { return result.trial.t; }));
}

Preview<Row> by_row(std::int64_t count, AshaOptions options, std::size_t gangs = 1,
                    std::int64_t reports = 100) {
  return simulate<Row>(rows(count, options),
                       {.curve = [](const Row& row, auto) { return 0.01 * (1.0 + row.row); },
                        .reports = reports,
                        .gangs = gangs});
}

AshaPromotion min_loss(AshaOptions options) { return {options, {"loss", Min}, 1}; }

bool pauses(const Decision& decision) { return std::holds_alternative<Pause>(decision); }

}  // namespace

// The vector of a published implementation: 12 trials, 3 rungs, a third goes on.
TEST_CASE("of twelve trials eight train to the first rung, three to the second and one to the end",
          "[tune][asha][promotion]") {
  const auto preview = by_row(12, {.max_t = 9, .eta = 3});
  CHECK(trained_to(preview, 1) == 8);
  CHECK(trained_to(preview, 3) == 3);
  CHECK(trained_to(preview, 9) == 1);
  CHECK(preview.results.trials()[0].trial.t == 9);
  CHECK(preview.steps == 8 * 1 + 3 * 3 + 1 * 9);
  CHECK(preview.results.trials()[0].trial.status == Status::Terminated);
  for (TrialId id = 4; id < 12; ++id) {
    CAPTURE(id);
    CHECK(preview.results.trials()[id].trial.status == Status::Stopped);
    CHECK(preview.results.trials()[id].trial.reason == "not promoted from rung 0 (t=1): place " +
                                                           std::to_string(id + 1) +
                                                           " of 12, and the best 4 go on");
  }
}

TEST_CASE("a preview prints the rungs and the budget", "[tune][asha][promotion][simulate]") {
  std::ostringstream text;
  text << by_row(12, {.max_t = 9, .eta = 3});
  CHECK_THAT(text.str(), Catch::Contains("    rung 0 (t=1): 12 judged"));
  // Each of the four at the second rung and the one at the last was launched once more.
  CHECK_THAT(
      text.str(),
      Catch::EndsWith(
          "\n  trials that reach each rung, and the end: t=1: 12, t=3: 4, t=9: 1\n"
          "  26 steps in 17 launches, 108 if each trial came as far as the furthest\n"
          "  the places were busy 100 % of the time\n"
          "  the best value, 0.01, was first reached by trial 0 after 1.0 s and 1 step of all "
          "trials\n"));
}

// The same vector with the lengths that it was published with.
TEST_CASE("of twelve trials the best runs to 9000, three more to 3000 and eight to 1000",
          "[tune][asha][promotion]") {
  const auto preview = by_row(12, {.max_t = 9000, .eta = 3, .grace = 1000}, 1, 9000);
  CHECK(trained_to(preview, 1000) == 8);
  CHECK(trained_to(preview, 3000) == 3);
  CHECK(trained_to(preview, 9000) == 1);
  CHECK(preview.steps == 8 * 1000 + 3 * 3000 + 9000);
}

TEST_CASE("max_t is the last rung also where it is no power of eta", "[tune][asha][promotion]") {
  const auto times = [](AshaOptions options) {
    std::vector<std::int64_t> all;
    for (const auto& rung : min_loss(options).rungs()) all.push_back(rung.t);
    return all;
  };
  using Times = std::vector<std::int64_t>;
  CHECK(times({.max_t = 50, .eta = 3}) == Times{1, 3, 9, 27, 50});
  CHECK(times({.max_t = 81, .eta = 3}) == Times{1, 3, 9, 27, 81});
  CHECK(times({.max_t = 900, .eta = 3, .grace = 100}) == Times{100, 300, 900});
  CHECK(times({.max_t = 10, .eta = 2}) == Times{1, 2, 4, 8, 10});
  CHECK(times({.max_t = 50, .eta = 4, .brackets = 2}) == Times{1, 4, 16, 50, 4, 16, 50});
  CHECK(times({.max_t = 1}) == Times{1});
  const auto preview = by_row(243, {.max_t = 50, .eta = 3}, 8);
  CHECK(trained_to(preview, 50) >= 1);
}

TEST_CASE("a trial that would be promoted at once trains on in its place",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 2});
  HandMadeTrials trials;
  CHECK(pauses(trials.report(asha, 0, 1, 5)));
  CHECK(goes_on(trials.report(asha, 1, 1, 4)));  // the better of two
  CHECK(pauses(trials.report(asha, 1, 2, 4)));
  CHECK(pauses(trials.report(asha, 2, 1, 4.5)));  // one of three may, and did
  CHECK(pauses(trials.report(asha, 3, 1, 6)));    // now the one before it may
  CHECK(trials.place(asha) == TrialId{2});
  CHECK(goes_on(trials.report(asha, 4, 1, 1)));
}

TEST_CASE("who pauses, is promoted or goes on is told place and number",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 3});
  HandMadeTrials trials;
  CHECK(why_of(trials.report(asha, 0, 1, 0.5)) ==
        "paused at rung 0 (t=1): loss 0.5 is place 1 of 1, the best 0 go on");
  CHECK(why_of(trials.report(asha, 1, 1, kNan)) ==
        "paused at rung 0 (t=1): loss (not finite) is place 2 of 2, the best 0 go on");
  CHECK(why_of(trials.report(asha, 2, 1, 0.25)) ==
        "promoted from rung 0 (t=1): loss 0.25 is place 1 of 3, the best 1 go on");
  for (TrialId id = 3; id < 6; ++id)
    trials.report(asha, id, 1, 0.5 + 0.125 * static_cast<double>(id));
  REQUIRE(trials.place(asha) == TrialId{0});
  CHECK(trials.resumed.why ==
        "promoted from rung 0 (t=1): loss 0.5 is place 2 of 6, the best 2 go on");
  CHECK(trials.resumed.rung == 0);
}

TEST_CASE("who goes on so that one trial is trained to its end is told so",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 3});
  HandMadeTrials trials;
  trials.report(asha, 0, 1, 0.5);
  trials.report(asha, 1, 1, 0.75);
  trials.to_come = 0;
  REQUIRE(trials.place(asha) == TrialId{0});
  CHECK(trials.resumed.why ==
        "goes on from rung 0 (t=1): loss 0.5 is place 1 of 2, the best 0 go on; nothing else runs, "
        "and nobody has trained to max_t=9");
}

TEST_CASE("with several brackets a reason of promotion says which one was drawn",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 3, .brackets = 2});
  HandMadeTrials trials;
  std::size_t second = 0;
  for (TrialId id = 0; id < 20; ++id) {
    const auto why = why_of(trials.report(asha, id, 3, 0.5));
    const bool is_second = why.find("rung 0 (t=3) of bracket 1: ") != std::string::npos;
    const bool is_first = why.find("rung 0 (t=1) of bracket 0: ") != std::string::npos ||
                          why.find("rung 1 (t=3) of bracket 0: ") != std::string::npos;
    CHECK(is_first != is_second);
    if (is_second) ++second;
  }
  CHECK(second > 0);
  CHECK(second < 20);
}

TEST_CASE("a free place goes to the highest rung, there to the best, of equals to the first",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 2});
  HandMadeTrials trials;
  trials.report(asha, 0, 1, 9);
  trials.report(asha, 1, 1, 9);
  // The first of equals, and it pauses on the way out while the other reports.
  CHECK(trials.place(asha) == TrialId{0});
  CHECK_FALSE(trials.place(asha));
  trials.report(asha, 2, 1, 9);
  trials.report(asha, 3, 1, 9);
  CHECK(trials.place(asha) == TrialId{1});
  CHECK(pauses(trials.report(asha, 0, 2, 8)));
  CHECK(goes_on(trials.report(asha, 1, 2, 7)));
  trials.report(asha, 4, 1, 9);
  trials.report(asha, 5, 1, 9);
  CHECK(pauses(trials.report(asha, 1, 4, 7)));
  CHECK(trials.place(asha) == TrialId{2});
}

TEST_CASE("a value that is not finite is the worst of its rung and is never promoted",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 2});
  HandMadeTrials trials;
  trials.report(asha, 0, 1, kNan);
  trials.report(asha, 1, 1, -std::numeric_limits<double>::infinity());
  trials.report(asha, 2, 1, kNan);
  CHECK_FALSE(trials.place(asha));
  CHECK(goes_on(trials.report(asha, 3, 1, 100)));
  CHECK(asha.rungs()[0].not_finite == 3);
  // A search of nothing else ends.
  const auto preview = simulate<Row>(rows(9, {.max_t = 9, .eta = 3}),
                                     {.curve = [](const Row&, auto) { return kNan; }});
  CHECK(trained_to(preview, 1) == 9);
}

TEST_CASE("a report without the metric is not entered; the next one is, in the rung that was due",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 2});
  std::vector<Trial> all{trial_at(0, 1, {{"other", 1.0}})};
  CHECK(goes_on(asha.on_report(all[0], {all, 1})));
  all[0].t = 2;
  all[0].last = {{"loss", 1.0}};
  CHECK(pauses(asha.on_report(all[0], {all, 1})));
  CHECK(asha.rungs()[0].reached == 1);
  CHECK(asha.rungs()[1].reached == 0);
  CHECK(asha.rungs()[2].reached == 0);
}

TEST_CASE("a trial that errored counts in the rung that it was on the way to",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 3});
  HandMadeTrials trials;
  trials.report(asha, 0, 1, 1);
  trials.report(asha, 1, 1, 2);
  CHECK_FALSE(trials.place(asha));
  trials.all.push_back({.id = 2});
  trials.end(asha, 2, Status::Errored);
  CHECK(asha.rungs()[0].not_finite == 1);
  CHECK(trials.place(asha) == TrialId{0});
}

TEST_CASE("few trials too end with one that is trained to its end", "[tune][asha][promotion]") {
  for (const std::int64_t count : {1, 2, 3, 5}) {
    CAPTURE(count);
    const auto preview = by_row(count, {.max_t = 64, .eta = 4}, 2);
    CHECK(trained_to(preview, 64) == 1);
    CHECK(preview.results.trials()[0].trial.t == 64);
  }
}

TEST_CASE("a pause without a checkpoint is told once", "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 9, .eta = 3});
  HandMadeTrials trials;
  CHECK(notice_of(trials.report(asha, 0, 1, 1)).empty());
  CHECK_THAT(notice_of(trials.report(asha, 1, 1, 1, false)),
             Catch::Contains("without a checkpoint of that report"));
  CHECK(notice_of(trials.report(asha, 2, 1, 5, false)).empty());
}

TEST_CASE("asha with promotion goes on from its saved state as it would have",
          "[tune][asha][promotion]") {
  auto asha = min_loss({.max_t = 27, .eta = 3, .brackets = 2});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 40; ++id) {
    for (std::int64_t t = 1; t <= 3; ++t) {
      if (!goes_on(trials.report(asha, id, t, id == 7 ? kNan : std::fmod(id * 0.37, 1)))) break;
    }
    const auto saved = asha.save();
    auto copy = min_loss({.max_t = 27, .eta = 3, .brackets = 2});
    copy.load(saved);
    REQUIRE(copy.save() == saved);
    auto others = trials;
    REQUIRE(others.place(copy) == trials.place(asha));
  }
  auto other = min_loss({.max_t = 9, .eta = 3, .brackets = 2});
  CHECK_THROWS_WITH(other.load(asha.save()), Catch::Contains("max_t is 27 there, 9 here"));
  CHECK_THROWS_AS(asha.load(R"({"scheduler":"asha"})"), std::invalid_argument);
  CHECK_THROWS_AS(asha.load("{"), std::invalid_argument);
}

}  // namespace asha_promotion_test
