#include <troupe/tune/schedulers/asha.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "support/scheduler.hpp"

namespace asha_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInf = std::numeric_limits<double>::infinity();

Metrics accuracy(double value) { return {{"accuracy", value}}; }

Asha max_accuracy(AshaOptions options, std::uint64_t seed = 1) {
  return {options, {"accuracy", Max}, seed};
}

/// The decisions about one report at t=1 of as many trials, as letters: c, s.
std::string one_rung(int eta, const std::vector<double>& losses) {
  Asha asha({.max_t = 100, .eta = eta}, {"loss", Min}, 1);
  std::string letters;
  for (std::size_t trial = 0; trial < losses.size(); ++trial) {
    letters += goes_on(on_report(asha, trial, 1, {{"loss", losses[trial]}})) ? 'c' : 's';
  }
  return letters;
}

std::vector<std::int64_t> rung_times(const Asha& asha) {
  std::vector<std::int64_t> times;
  for (const auto& rung : asha.rungs()) times.push_back(rung.t);
  return times;
}

}  // namespace

TEST_CASE("rungs stand at grace * eta^k below max_t, whatever a logarithm would round to",
          "[tune][asha]") {
  using Times = std::vector<std::int64_t>;
  CHECK(rung_times(max_accuracy({.max_t = 100, .eta = 4})) == Times{1, 4, 16, 64});
  CHECK(rung_times(max_accuracy({.max_t = 81, .eta = 3})) == Times{1, 3, 9, 27});
  CHECK(rung_times(max_accuracy({.max_t = 10, .eta = 2})) == Times{1, 2, 4, 8});
  CHECK(rung_times(max_accuracy({.max_t = 1000, .eta = 10})) == Times{1, 10, 100});
  CHECK(rung_times(max_accuracy({.max_t = 243, .eta = 3})) == Times{1, 3, 9, 27, 81});
  CHECK(rung_times(max_accuracy({.max_t = 244, .eta = 3})) == Times{1, 3, 9, 27, 81, 243});
  CHECK(rung_times(max_accuracy({.max_t = 20, .eta = 2, .grace = 5})) == Times{5, 10});
  CHECK(rung_times(max_accuracy({.max_t = 100, .eta = 4, .brackets = 3})) ==
        Times{1, 4, 16, 64, 4, 16, 64, 16, 64});
  CHECK(rung_times(max_accuracy({.max_t = INT64_MAX, .eta = 1 << 30})) ==
        Times{1, 1 << 30, std::int64_t{1} << 60});
  CHECK(rung_times(max_accuracy({.max_t = 1})).empty());
}

TEST_CASE("options that make no rungs to judge in are refused with their values", "[tune][asha]") {
  CHECK_THROWS_WITH(
      asha({.eta = 1}),
      "asha: max_t 100, eta 1, grace 1, brackets 1: eta is at least 2, the others at least 1");
  CHECK_THROWS_AS(asha({.max_t = 0}), std::invalid_argument);
  CHECK_THROWS_AS(asha({.grace = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(asha({.max_t = 4, .grace = 9}),
                    Catch::Contains("grace 9 is more than max_t 4, so that no trial would make"));
  CHECK_NOTHROW(asha({.max_t = 4, .grace = 4}));
  CHECK_THROWS_AS(asha({.brackets = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(asha({.max_t = 10, .eta = 2, .brackets = 5}),
                    "asha: 5 brackets, but max_t 10, eta 2 and grace 1 make 4 rungs only");
}

TEST_CASE("one rung judges by the quantile of those before, as Ray does", "[tune][asha]") {
  const std::vector losses{.5, .4, .6, .45, .3, .35, .55, .2, .4, .25};
  CHECK(one_rung(2, losses) == "ccscccsccc");
  // Determined, Optuna and Syne Tune each answer something else here.
  CHECK(one_rung(3, losses) == "ccscccscsc");
  CHECK(one_rung(4, losses) == "ccscccscsc");
}

TEST_CASE("losses that only grow stop all but the first, losses that only fall stop none",
          "[tune][asha]") {
  CHECK(one_rung(3, {.1, .2, .3, .4, .5, .6}) == "csssss");
  CHECK(one_rung(3, {.6, .5, .4, .3, .2, .1}) == "cccccc");
  CHECK(one_rung(3, {.5, .5, .5, .5}) == "cccc");
}

TEST_CASE("what is not finite is the worst of its rung and stops, the first trial too",
          "[tune][asha]") {
  CHECK(one_rung(3, {.5, kNan, .6, .45, kNan, .3}) == "csscsc");
  CHECK(one_rung(3, {kNan, .9, kInf, .9, -kInf}) == "scscs");

  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  const auto decision = on_report(asha, 0, 1, accuracy(kNan));
  CHECK(decision == Decision{Stop{"stopped at rung 0 (t=1): accuracy is nan", 0}});
  CHECK(goes_on(on_report(asha, 1, 1, accuracy(-5))));
  CHECK(asha.rungs()[0].not_finite == 1);
}

TEST_CASE("a stop says where, by how much and against how many", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  for (TrialId trial = 0; trial < 9; ++trial)
    on_report(asha, trial, 1, accuracy(0.5 + 0.05 * static_cast<double>(trial)));

  const auto decision = on_report(asha, 9, 1, accuracy(0.41));

  CHECK(stops(decision));
  CHECK(rung_of(decision) == 0);
  CHECK(why_of(decision) ==
        "stopped at rung 0 (t=1): accuracy 0.41 is below the cutoff 0.766667, the best 1/3 of 9");
}

TEST_CASE("a trial that passes is told by which numbers", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  CHECK(why_of(on_report(asha, 0, 1, accuracy(0.5))) ==
        "passed rung 0 (t=1): accuracy 0.5 is the first there");
  CHECK(why_of(on_report(asha, 1, 1, accuracy(0.5))) ==
        "passed rung 0 (t=1): accuracy 0.5 is not below the cutoff 0.5, the value of the only "
        "trial before it");
  CHECK(why_of(on_report(asha, 2, 1, accuracy(0.75))) ==
        "passed rung 0 (t=1): accuracy 0.75 is not below the cutoff 0.5, the best 1/3 of 2");
  CHECK(why_of(on_report(asha, 2, 2, accuracy(0.75))).empty());
}

TEST_CASE("with several brackets the reasons say which one was drawn", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 100, .eta = 4, .brackets = 2});
  std::array<int, 2> drawn{};
  for (TrialId trial = 0; trial < 40; ++trial) {
    const auto first = why_of(on_report(asha, trial, 1, accuracy(0.5)));
    const auto later = why_of(on_report(asha, trial, 4, accuracy(0.5)));
    const bool is_second = first == "in bracket 1 of 2, as drawn: judged at t=4, 16, 64";
    ++drawn[is_second ? 1 : 0];
    if (!is_second) CHECK_THAT(first, Catch::StartsWith("passed rung 0 (t=1) of bracket 0: "));
    CHECK_THAT(later, Catch::StartsWith(is_second ? "passed rung 0 (t=4) of bracket 1: "
                                                  : "passed rung 1 (t=4) of bracket 0: "));
  }
  CHECK(drawn[0] > 0);
  CHECK(drawn[1] > 0);
}

TEST_CASE("a stop by the second trial of a rung names what the first one had", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  on_report(asha, 0, 1, accuracy(0.5));
  CHECK(why_of(on_report(asha, 1, 1, accuracy(0.41))) ==
        "stopped at rung 0 (t=1): accuracy 0.41 is below the cutoff 0.5, the value of the only "
        "trial before it");
}

TEST_CASE("Ray's own vectors hold", "[tune][asha]") {
  SECTION("a grace period and a reduction factor of 3") {
    auto asha = max_accuracy({.max_t = 100, .eta = 3, .grace = 3});
    for (int i = 1; i < 10; ++i) CHECK(goes_on(on_report(asha, 1, i, accuracy(i * 100))));
    for (int i = 1; i < 5; ++i) CHECK(goes_on(on_report(asha, 2, i, accuracy(450))));
    CHECK(goes_on(on_report(asha, 3, 1, accuracy(10))));
    CHECK(goes_on(on_report(asha, 3, 2, accuracy(10))));
    CHECK(stops(on_report(asha, 3, 3, accuracy(10))));
  }
  SECTION("a reduction factor of 2") {
    auto asha = max_accuracy({.max_t = 100, .eta = 2});
    for (int i = 1; i < 10; ++i) CHECK(goes_on(on_report(asha, 1, i, accuracy(i * 100))));
    for (int i = 1; i < 5; ++i) CHECK(goes_on(on_report(asha, 2, i, accuracy(450))));
    CHECK(stops(on_report(asha, 3, 1, accuracy(260))));
    CHECK(stops(on_report(asha, 4, 2, accuracy(260))));
  }
  SECTION("at max_t every trial is finished, in every bracket") {
    auto asha = max_accuracy({.max_t = 10, .eta = 2, .brackets = 4});
    for (TrialId trial = 0; trial < 20; ++trial) {
      const auto decision = on_report(asha, trial, 10, accuracy(1));
      CHECK(decision == Decision{Finish{"trained to max_t=10"}});
    }
  }
}

TEST_CASE("a repeated report changes nothing", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  on_report(asha, 0, 1, accuracy(0.5));
  on_report(asha, 0, 2, accuracy(0.6));
  const auto before = asha.save();

  CHECK(on_report(asha, 0, 1, accuracy(0.1)) == Decision{});
  CHECK(on_report(asha, 0, 2, accuracy(0.1)) == Decision{});

  CHECK(asha.save() == before);
}

TEST_CASE("a trial that jumps over rungs is judged once in each of them", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  CHECK(rung_of(on_report(asha, 0, 10, accuracy(0.5))) == 2);
  CHECK(on_report(asha, 0, 11, accuracy(0.5)) == Decision{});
  CHECK(asha.rungs()[0].reached == 1);
  CHECK(asha.rungs()[1].reached == 1);
  CHECK(asha.rungs()[2].reached == 1);
}

TEST_CASE("a report without the metric waits with the rung for the next one", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  CHECK(on_report(asha, 0, 1, {{"loss", 1}}) == Decision{});
  CHECK(rung_of(on_report(asha, 0, 2, accuracy(0.5))) == 0);
}

TEST_CASE("brackets are drawn by a softmax over their rungs, from the seed and the trial",
          "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 100, .eta = 4, .brackets = 3}, 3);
  constexpr int trials = 20'000;
  for (TrialId trial = 0; trial < trials; ++trial) on_report(asha, trial, 64, accuracy(0));
  const auto rungs = asha.rungs();
  CHECK(static_cast<double>(rungs[3].reached) / trials == Approx(.6652).margin(.015));
  CHECK(static_cast<double>(rungs[6].reached) / trials == Approx(.2447).margin(.015));
  CHECK(static_cast<double>(rungs[8].reached) / trials == Approx(.0900).margin(.015));
}

// Reference probabilities of a softmax over the numbers of rungs.
TEST_CASE("two and five brackets are drawn as often as the reference says", "[tune][asha]") {
  constexpr int trials = 20'000;
  const auto parts = [](AshaOptions options, std::int64_t t) {
    auto asha = max_accuracy(options, 7);
    for (TrialId trial = 0; trial < trials; ++trial) on_report(asha, trial, t, accuracy(0));
    std::vector<double> parts;
    for (const auto& rung : asha.rungs())
      if (rung.t == t) parts.push_back(static_cast<double>(rung.reached) / trials);
    return parts;
  };
  // 4 and 3 rungs.
  const auto two = parts({.max_t = 100, .eta = 4, .brackets = 2}, 64);
  REQUIRE(two.size() == 2);
  CHECK(two[0] == Approx(.7311).margin(.012));
  CHECK(two[1] == Approx(.2689).margin(.012));
  // 5 to 1 rungs.
  const auto five = parts({.max_t = 1000, .eta = 4, .brackets = 5}, 256);
  REQUIRE(five.size() == 5);
  CHECK(five[0] == Approx(.6364).margin(.013));
  CHECK(five[1] == Approx(.2341).margin(.012));
  CHECK(five[2] == Approx(.0861).margin(.008));
  CHECK(five[3] == Approx(.0317).margin(.005));
  CHECK(five[4] == Approx(.0117).margin(.003));
}

TEST_CASE("at every moment a saved scheduler goes on as the one that saved it", "[tune][asha]") {
  const auto seed = GENERATE(range(1u, 21u));
  CAPTURE(seed);
  Random random(seed);
  const AshaOptions options{.max_t = 30,
                            .eta = 2 + static_cast<int>(random.below(3)),
                            .brackets = 1 + static_cast<int>(random.below(2))};
  auto original = max_accuracy(options, seed);
  std::map<TrialId, std::int64_t> t;
  std::set<TrialId> over;

  for (int step = 0; step < 400; ++step) {
    if (random.below(20) == 0) {
      auto copy = max_accuracy(options, seed);
      copy.load(original.save());
      REQUIRE(copy.save() == original.save());
      std::swap(copy, original);
    }
    const TrialId trial = random.below(40);
    if (over.contains(trial)) continue;
    const auto value = random.below(10) == 0 ? kNan : random.unit();
    const auto before = original.rungs();
    const auto decision = on_report(original, trial, ++t[trial], accuracy(value));
    const auto after = original.rungs();
    std::size_t entered = 0, stopped = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      entered += after[i].reached - before[i].reached;
      stopped += after[i].stopped + after[i].not_finite - before[i].stopped - before[i].not_finite;
      REQUIRE(after[i].stopped + after[i].not_finite <= after[i].reached);
    }
    REQUIRE(entered == (rung_of(decision) ? 1 : 0));
    REQUIRE(stopped == (stops(decision) ? 1 : 0));
    REQUIRE(finishes(decision) == (t[trial] >= options.max_t));
    if (goes_on(decision)) continue;
    REQUIRE_FALSE(why_of(decision).empty());
    on_end(original, trial);
    over.insert(trial);
  }
}

TEST_CASE("a scheduler refuses the state of another and what is no state", "[tune][asha]") {
  auto asha = max_accuracy({.max_t = 27, .eta = 3});
  const auto other = max_accuracy({.max_t = 81, .eta = 3}).save();
  CHECK_THROWS_WITH(asha.load(other), "saved by another scheduler: max_t is 81 there, 27 here");
  CHECK_THROWS_AS(asha.load("nonsense"), std::invalid_argument);
  CHECK_THROWS_AS(asha.load("[1]"), std::invalid_argument);
  auto torn = asha.save();
  torn.replace(torn.find("scores"), 6, "scares");
  CHECK_THROWS_AS(asha.load(torn), std::invalid_argument);
}

}  // namespace asha_test
