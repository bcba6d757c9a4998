#include <troupe/tune/schedulers/hyperband.hpp>

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/simulate.hpp>

#include "support/hand_made_trials.hpp"

namespace hyperband_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
using Times = std::vector<std::int64_t>;
using Counts = std::vector<std::size_t>;

/// A configuration is the number of a curve: the lower, the better.
struct Row {
  std::int64_t row = 0;
};

Preview<Row> by_row(std::int64_t count, HyperBandOptions options, std::size_t gangs) {
  std::vector<Scalar> numbers;
  for (std::int64_t row = 0; row < count; ++row) numbers.emplace_back(row);
  tune::Options<Row> rows{.space = {{"row", grid(numbers)}},
                          .metric = "loss",
                          .mode = Min,
                          .scheduler = hyperband(options)};
  return simulate<Row>(
      rows, {.curve = [](const Row& row, auto) { return 0.01 * (1.0 + row.row); }, .gangs = gangs});
}

std::size_t trained_to(const Preview<Row>& preview, std::int64_t t) {
  return static_cast<std::size_t>(std::ranges::count(
      preview.results.trials(), t, [](const auto& result) { return result.trial.t; }));
}

HyperBand min_loss(HyperBandOptions options) { return {options, {"loss", Min}}; }

}  // namespace

// Table 1 of the paper, and its formula for n where the table rounds otherwise.
TEST_CASE("the brackets of hyperband are those of the paper", "[tune][hyperband]") {
  const auto hyperband = min_loss({.max_t = 81, .eta = 3});
  const auto& band = hyperband.band();
  REQUIRE(band.size() == 5);
  CHECK(band[0].t == Times{1, 3, 9, 27, 81});
  CHECK(band[0].trials == Counts{81, 27, 9, 3, 1});
  CHECK(band[1].t == Times{3, 9, 27, 81});
  CHECK(band[1].trials == Counts{34, 11, 3, 1});
  CHECK(band[2].t == Times{9, 27, 81});
  CHECK(band[2].trials == Counts{15, 5, 1});
  CHECK(band[3].t == Times{27, 81});
  CHECK(band[3].trials == Counts{8, 2});
  CHECK(band[4].t == Times{81});
  CHECK(band[4].trials == Counts{5});
  // The last power is there although a quotient of logarithms rounds below it.
  CHECK(min_loss({.max_t = 243, .eta = 3}).band().size() == 6);
  CHECK(min_loss({.max_t = 1000, .eta = 10}).band().size() == 4);
  CHECK(min_loss({.max_t = 1}).band().size() == 1);
  CHECK(min_loss({.max_t = 50, .eta = 3}).band()[0].t == Times{1, 5, 16, 50});
}

// Rungs that count down from max_t, as a published implementation has them: 3 rungs of 900 by 3, 4 of
// 10 by 2. Of 810 the bracket with four halvings begins at 10, and the last one with 810.
TEST_CASE("hyperband's rungs count down from max_t where that is no power of eta",
          "[tune][hyperband]") {
  const auto with_rungs = [](HyperBandOptions options, std::size_t rungs) {
    const auto hyperband = min_loss(options);
    const auto& band = hyperband.band();
    return *std::ranges::find(band, rungs, [](const auto& plan) { return plan.t.size(); });
  };
  CHECK(with_rungs({.max_t = 900, .eta = 3}, 3).t == Times{100, 300, 900});
  CHECK(with_rungs({.max_t = 10, .eta = 2}, 4).t == Times{1, 2, 5, 10});
  const HyperBandOptions large{.max_t = 810, .eta = 3};
  REQUIRE(min_loss(large).band().size() == 7);
  CHECK(with_rungs(large, 7).t == Times{1, 3, 10, 30, 90, 270, 810});
  CHECK(with_rungs(large, 7).trials == Counts{729, 243, 81, 27, 9, 3, 1});
  CHECK(with_rungs(large, 5).t == Times{10, 30, 90, 270, 810});
  CHECK(with_rungs(large, 5).trials == Counts{114, 38, 12, 4, 1});  // 7/5 * 81, rounded up
  CHECK(with_rungs(large, 1).t == Times{810});
  CHECK(with_rungs(large, 1).trials == Counts{7});
}

TEST_CASE("a whole band trains as many trials to each rung as it plans", "[tune][hyperband]") {
  for (const std::size_t gangs : {1, 7, 200}) {
    CAPTURE(gangs);
    const auto preview = by_row(143, {.max_t = 81, .eta = 3}, gangs);
    // To 81 come one of each of the three first brackets, two of the fourth, five of the last.
    CHECK(trained_to(preview, 81) == 1 + 1 + 1 + 2 + 5);
    CHECK(trained_to(preview, 1) == 81 - 27);
    CHECK(trained_to(preview, 3) == (27 - 9) + (34 - 11));
    CHECK(trained_to(preview, 9) == (9 - 3) + (11 - 3) + (15 - 5));
    CHECK(trained_to(preview, 27) == (3 - 1) + (3 - 1) + (5 - 1) + (8 - 2));
    CHECK(preview.results.trials()[0].trial.t == 81);
    CHECK(preview.results.trials()[80].trial.reason ==
          "left at rung 0 (t=1) of bracket 0: place 81 of 81, and the best 27 go on");
  }
}

TEST_CASE("a bracket that the search does not fill ends with a trained trial",
          "[tune][hyperband]") {
  const auto preview = by_row(10, {.max_t = 81, .eta = 3}, 4);
  CHECK(trained_to(preview, 81) == 1);
  CHECK(trained_to(preview, 1) == 7);
  CHECK(preview.results.best().trial.t == 81);
}

TEST_CASE("a rung is judged once all have come, also those that fail on the way",
          "[tune][hyperband]") {
  auto hyperband = min_loss({.max_t = 3, .eta = 3});  // three begin, one goes on, two at 3
  REQUIRE(hyperband.band()[0].trials == Counts{3, 1});
  HandMadeTrials trials;
  const auto paused = trials.report(hyperband, 0, 1, 1);
  CHECK(paused.index() == Decision(Pause{}).index());
  CHECK(why_of(paused) ==
        "paused at rung 0 (t=1) of bracket 0: loss 1 is place 1 of the 1 that have come");
  CHECK_FALSE(trials.place(hyperband));
  trials.report(hyperband, 1, 1, kNan);
  CHECK_FALSE(trials.place(hyperband));
  trials.begin(2);
  trials.end(hyperband, 2, Status::Errored);
  CHECK(trials.place(hyperband) == TrialId{0});
  CHECK(trials.resumed.why ==
        "goes on from rung 0 (t=1) of bracket 0: loss 1 is among the best 1 of 3");
  CHECK(trials.resumed.rung == 0);
  CHECK_FALSE(trials.place(hyperband));
  CHECK(finishes(trials.report(hyperband, 0, 3, 1)));
}

TEST_CASE("the last of a rung trains on in its place where it is among the best",
          "[tune][hyperband]") {
  auto hyperband = min_loss({.max_t = 3, .eta = 3});
  HandMadeTrials trials;
  trials.report(hyperband, 0, 1, 3);
  trials.report(hyperband, 1, 1, 2);
  const auto last = trials.report(hyperband, 2, 1, 1);
  REQUIRE(goes_on(last));
  CHECK(why_of(last) == "goes on from rung 0 (t=1) of bracket 0: loss 1 is among the best 1 of 3");
  CHECK_FALSE(trials.place(hyperband));
}

TEST_CASE("a trial that ends at its rung before it is chosen spoils no later rung",
          "[tune][hyperband]") {
  auto hyperband = min_loss({.max_t = 9, .eta = 3});  // 9 begin, 3 come to t=3, 1 to t=9
  HandMadeTrials trials;
  trials.report(hyperband, 0, 1, 0.1);
  trials.end(hyperband, 0, Status::Terminated);  // on a plateau, or out of time
  for (TrialId id = 1; id < 9; ++id) trials.report(hyperband, id, 1, static_cast<double>(id));
  // Trials 0, 1 and 2 are the best three, and the first of them has no place to give away.
  REQUIRE(trials.place(hyperband) == TrialId{1});
  CHECK(trials.report(hyperband, 1, 3, 5).index() == Decision(Pause{}).index());
  CHECK_FALSE(trials.place(hyperband) == TrialId{1});
  CHECK(trials.all[2].in_flight);
  CHECK(goes_on(trials.report(hyperband, 2, 3, 4)));
  CHECK(finishes(trials.report(hyperband, 2, 9, 4)));
}

TEST_CASE("hyperband goes on from its saved state as if it had never ended", "[tune][hyperband]") {
  const auto value = [](TrialId id, std::int64_t t) {
    return static_cast<double>((id * 7919 + static_cast<std::uint64_t>(t) * 31) % 101);
  };
  auto kept = min_loss({.max_t = 9, .eta = 3});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 17; ++id) {
    trials.report(kept, id, 1, value(id, 1));
    auto anew = min_loss({.max_t = 9, .eta = 3});
    anew.load(kept.save());
    CHECK(anew.save() == kept.save());
    auto same_trials = trials;
    while (const auto resumed = trials.place(kept)) {
      CHECK(same_trials.place(anew) == resumed);
      const auto t = trials.all[*resumed].t * 3;
      CHECK(trials.report(kept, *resumed, t, value(*resumed, t)) ==
            same_trials.report(anew, *resumed, t, value(*resumed, t)));
    }
    CHECK_FALSE(same_trials.place(anew));
  }
  CHECK_THROWS_WITH(min_loss({.max_t = 27, .eta = 3}).load(kept.save()),
                    Catch::Contains("max_t is 9 there, 27 here"));
}

TEST_CASE("hyperband refuses options that make no sense", "[tune][hyperband]") {
  CHECK_THROWS_WITH(hyperband({.max_t = 0}), Catch::Contains("max_t=0"));
  CHECK_THROWS_WITH(hyperband({.max_t = 9, .eta = 1}), Catch::Contains("eta=1"));
}

}  // namespace hyperband_test
