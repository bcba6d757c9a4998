// A metric that comes only now and then, as of an evaluation every few epochs: its reports are behind the rungs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/asha_promotion.hpp>
#include <troupe/tune/schedulers/median_stopping.hpp>
#include <troupe/tune/schedulers/pb2.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "support/sparse_search.hpp"

namespace sparse_metric_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();

bool pauses(const Decision& decision) { return std::holds_alternative<Pause>(decision); }

/// Trials that train as soon as they are promoted, on as many gangs as it takes.
struct Unlimited : HandMadeTrials {
  std::set<TrialId> running() const {
    std::set<TrialId> ids;
    for (const auto& trial : all) {
      if (trial.in_flight) ids.insert(trial.id);
    }
    return ids;
  }
};

/// A search with promotion whose reports are behind rungs, and the same one where each trial has its value at the rungs
/// themselves: whenever it trains, and its report is behind the next rung, it reports there.
struct SideBySide {
  AshaPromotion sparse{{.max_t = 27, .eta = 3}, {"loss", Min}, 1}, exact = sparse;
  Unlimited sparse_trials, exact_trials;

  void report(TrialId id, std::int64_t more, double value) {
    const bool runs = sparse_trials.running().contains(id);
    if (!runs && !values.try_emplace(id).second) return;  // it is paused, or over
    auto& [t, its] = values[id];
    t = std::min<std::int64_t>(t + more, 27);
    its = value;
    if (finishes(sparse_trials.report(sparse, id, t, value)))
      sparse_trials.end(sparse, id, Status::Terminated);
    while (sparse_trials.place(sparse)) continue;
    report_at_rungs(id);
    while (const auto promoted = exact_trials.place(exact)) report_at_rungs(*promoted);
  }

 private:
  /// At the rungs that the trial has passed, until it pauses.
  void report_at_rungs(TrialId id) {
    const auto [t, value] = values.at(id);
    auto& next = next_rung[id];
    exact_trials.begin(id);
    while (next < 4 && exact.rungs()[next].t <= t) {
      const auto decision = exact_trials.report(exact, id, exact.rungs()[next].t, value);
      ++next;
      if (finishes(decision)) exact_trials.end(exact, id, Status::Terminated);
      if (!goes_on(decision)) return;
    }
  }

  std::map<TrialId, std::pair<std::int64_t, double>> values;  // of the last report
  std::map<TrialId, std::size_t> next_rung;
};

}  // namespace

// ---- ASHA ---------------------------------------------------------------------------------------

TEST_CASE("a report behind several rungs is judged in one after the other", "[tune][asha]") {
  Asha asha({.max_t = 27, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  CHECK(goes_on(trials.report(asha, 0, 1, 5)));
  CHECK(goes_on(trials.report(asha, 0, 3, 1)));
  const auto second = trials.report(asha, 1, 4, 3);
  CHECK(stops(second));  // it is good enough for t=1, and not for t=3
  CHECK(rung_of(second) == 1);
  CHECK(reached(asha) == Counts{2, 2, 0});
  const auto third = trials.report(asha, 2, 10, 6);
  CHECK(stops(third));
  CHECK(rung_of(third) == 0);
  CHECK(reached(asha) == Counts{3, 2, 0});  // it has not come to any other
  const auto best = trials.report(asha, 3, 10, 0.5);
  CHECK(rung_of(best) == 2);
  CHECK(reached(asha) == Counts{4, 3, 1});
  CHECK(why_of(best) ==
        "passed rung 0 (t=1): loss 0.5 is not above the cutoff 4.33333, the best 1/3 of 3; passed "
        "rung 1 (t=3): loss 0.5 is not above the cutoff 1.66667, the best 1/3 of 2; passed rung 2 "
        "(t=9): loss 0.5 is the first there");
}

TEST_CASE("what a trial has at max_t alone is entered as far as it would have come",
          "[tune][asha]") {
  Asha asha({.max_t = 27, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  CHECK(finishes(trials.report(asha, 0, 27, 1)));
  CHECK(finishes(trials.report(asha, 1, 27, 2)));
  CHECK(finishes(trials.report(asha, 2, 27, kNan)));
  CHECK(reached(asha) == Counts{3, 1, 1});
  CHECK(asha.rungs()[0].stopped == 0);
  CHECK(asha.rungs()[0].not_finite == 1);
  CHECK(stops(trials.report(asha, 3, 1, 3)));
}

TEST_CASE("ASHA decides on a report behind rungs as on the same one at each of these rungs",
          "[tune][asha]") {
  const std::vector<std::int64_t> rungs{1, 3, 9, 27};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Asha sparse({.max_t = 81, .eta = 3}, {"loss", Min}, 1), exact = sparse;
    HandMadeTrials trials, exact_trials;
    std::map<TrialId, std::int64_t> t;
    std::set<TrialId> over;
    for (int step = 0; step < 200; ++step) {
      const TrialId id = random.below(30);
      if (over.contains(id)) continue;
      const auto before = t[id];
      const auto now = t[id] += 1 + static_cast<std::int64_t>(random.below(12));
      if (now >= 81) break;
      const double value = random.unit();
      const auto decision = trials.report(sparse, id, now, value);
      Decision last;
      for (const auto rung : rungs) {
        if (rung > before && rung <= now && goes_on(last))
          last = exact_trials.report(exact, id, rung, value);
      }
      REQUIRE(decision.index() == last.index());
      REQUIRE(rung_of(decision) == rung_of(last));
      REQUIRE(reached(sparse) == reached(exact));
      if (stops(decision)) over.insert(id);
    }
  }
}

TEST_CASE("ASHA with promotion trains nobody for a rung that its report has passed",
          "[tune][asha][promotion]") {
  AshaPromotion asha({.max_t = 9, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  for (TrialId id = 0; id < 8; ++id)
    CHECK(pauses(trials.report(asha, id, 4, 1.0 + static_cast<double>(id))));
  // Two of eight may go on to t=3, and have come to it already; of these two none may go on.
  CHECK(reached(asha) == Counts{8, 2, 0});
  CHECK_FALSE(trials.place(asha));
  CHECK(pauses(trials.report(asha, 8, 4, 9)));
  CHECK(reached(asha) == Counts{9, 3, 0});
  REQUIRE(trials.place(asha) == TrialId{0});
  CHECK(trials.resumed.why ==
        "promoted from rung 1 (t=3): loss 1 is place 1 of 3, the best 1 go on");
  CHECK(finishes(trials.report(asha, 0, 9, 1)));
  trials.end(asha, 0, Status::Terminated);
  CHECK(reached(asha) == Counts{9, 3, 1});
  CHECK_FALSE(trials.place(asha));
}

TEST_CASE("who goes on as the last one trains from the highest rung that it has passed",
          "[tune][asha][promotion]") {
  AshaPromotion asha({.max_t = 27, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  trials.report(asha, 0, 4, 2);
  trials.report(asha, 1, 4, 1);
  trials.to_come = 0;
  REQUIRE(trials.place(asha) == TrialId{1});
  CHECK(trials.resumed.rung == 1);
  CHECK(pauses(trials.report(asha, 1, 12, 1)));
  CHECK(reached(asha) == Counts{2, 1, 1, 0});
  REQUIRE(trials.place(asha) == TrialId{1});
  CHECK(trials.resumed.rung == 2);
  CHECK(finishes(trials.report(asha, 1, 27, 1)));
}

TEST_CASE("a search whose metric comes at max_t alone ends with what has trained",
          "[tune][asha][promotion]") {
  AshaPromotion asha({.max_t = 9, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  for (TrialId id = 0; id < 4; ++id) {
    CHECK(finishes(trials.report(asha, id, 9, static_cast<double>(id))));
    trials.end(asha, id, Status::Terminated);
  }
  trials.to_come = 0;
  CHECK(reached(asha) == Counts{4, 1, 0});
  CHECK_FALSE(trials.place(asha));
}

TEST_CASE(
    "ASHA with promotion counts a trial that returns early with the last value that it reported",
    "[tune][asha][promotion]") {
  AshaPromotion asha({.max_t = 9, .eta = 2}, {"loss", Min}, 1);
  HandMadeTrials others;
  others.report(asha, 0, 1, 2);
  CHECK(goes_on(others.report(asha, 1, 1, 1)));
  silent(others, asha, 1, 2);
  others.end(asha, 1, Status::Terminated);
  CHECK(asha.rungs()[1].reached == 1);
  CHECK(asha.rungs()[1].not_finite == 0);
}

TEST_CASE("a trial that ends at its rung without promotion enters no other",
          "[tune][asha][promotion]") {
  AshaPromotion asha({.max_t = 9, .eta = 3}, {"loss", Min}, 1);
  HandMadeTrials trials;
  CHECK(pauses(trials.report(asha, 0, 1, 1)));
  trials.end(asha, 0, Status::Terminated);  // on a plateau, or out of time
  CHECK(reached(asha) == Counts{1, 0, 0});
}

TEST_CASE("ASHA promotes on a report behind rungs as on the same one at each of these rungs",
          "[tune][asha][promotion]") {
  std::size_t trained = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    SideBySide both;
    Random random(seed);
    for (int step = 0; step < 300; ++step) {
      both.report(random.below(30), 1 + static_cast<std::int64_t>(random.below(12)), random.unit());
      REQUIRE(reached(both.sparse) == reached(both.exact));
      REQUIRE(both.sparse_trials.running() == both.exact_trials.running());
    }
    trained += reached(both.sparse).back();
  }
  CHECK(trained > 50);
}

TEST_CASE("whatever reports have the metric, a search with promotion comes to its end",
          "[tune][asha][promotion]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    AshaPromotion asha({.max_t = 27, .eta = 3}, {"loss", Min}, 1);
    SparseSearch search(asha, seed, 40, 27);
    search.run(1 + seed % 5);
    const auto counts = reached(asha);
    REQUIRE(counts[0] == 40);
    for (std::size_t rung = 1; rung < counts.size(); ++rung)
      REQUIRE(counts[rung] >= std::max<std::size_t>(counts[rung - 1] / 3, 1));
    AshaPromotion copy({.max_t = 27, .eta = 3}, {"loss", Min}, 1);
    copy.load(asha.save());
    REQUIRE(copy.save() == asha.save());
  }
}

// ---- the median rule ----------------------------------------------------------------------------

TEST_CASE("a metric that comes between two intervals is judged at the interval that it has passed",
          "[tune][median]") {
  MedianStopping rule({.grace = 1, .min_samples = 1, .interval = 5}, {"loss", Min});
  HandMadeTrials trials;
  for (const std::int64_t t : {1, 4, 8, 12}) trials.report(rule, 0, t, 1);
  CHECK(goes_on(silent(trials, rule, 1, 1)));
  CHECK(stops(trials.report(rule, 1, 4, 2)));  // the first one at or behind 1
  CHECK(goes_on(trials.report(rule, 2, 1, 1)));
  CHECK(goes_on(trials.report(rule, 2, 5, 1)));
  CHECK(why_of(trials.report(rule, 2, 5, 1)).empty());
  CHECK_FALSE(why_of(trials.report(rule, 2, 8, 1)).empty());  // at or behind 6
  CHECK(why_of(trials.report(rule, 2, 10, 1)).empty());
  CHECK_FALSE(why_of(trials.report(rule, 2, 12, 1)).empty());  // at or behind 11
}

TEST_CASE("others that have trained on without the metric count with what they had",
          "[tune][median]") {
  MedianStopping rule({.grace = 1, .min_samples = 1}, {"loss", Min});
  HandMadeTrials trials;
  trials.report(rule, 0, 4, 1);
  CHECK(goes_on(trials.report(rule, 1, 5, 2)));  // trial 0 has not come to t=5
  silent(trials, rule, 0, 6);
  MedianStopping loaded({.grace = 1, .min_samples = 1}, {"loss", Min});
  loaded.load(rule.save());
  CHECK(loaded.save() == rule.save());
  CHECK(stops(trials.report(rule, 2, 6, 2)));
  CHECK(stops(trials.report(loaded, 2, 6, 2)));
}

// ---- populations --------------------------------------------------------------------------------

TEST_CASE("a member is judged at its first report with the metric behind its interval",
          "[tune][pbt][pb2]") {
  const SearchSpace mutate{{"lr", loguniform(1e-4, 1)}};
  const std::vector<SchedulerFactory> populations{
      pbt({.interval = 3, .quantile = 0, .mutate = mutate}),
      pb2({.interval = 3, .quantile = 0, .mutate = mutate})};
  for (const auto& make : populations) {
    const auto scheduler = make({"loss", Min}, 1);
    HandMadeTrials trials;
    trials.to_come = 0;
    std::vector<std::int64_t> judged;
    for (std::int64_t t = 1; t <= 16; ++t) {
      const bool has_metric = t % 4 == 0 || t == 1;
      const auto decision =
          has_metric ? trials.report(*scheduler, 0, t, 1) : silent(trials, *scheduler, 0, t);
      REQUIRE(goes_on(decision));
      if (why_of(decision).starts_with("judged: ")) judged.push_back(t);
    }
    CHECK(judged == std::vector<std::int64_t>{4, 8, 12, 16});
  }
}

TEST_CASE("a synchronous population waits for the metric of its last member", "[tune][pbt][pb2]") {
  const SearchSpace mutate{{"lr", loguniform(1e-4, 1)}};
  const std::vector<SchedulerFactory> populations{
      pbt({.interval = 3, .synchronous = true, .mutate = mutate}),
      pb2({.interval = 3, .synchronous = true, .mutate = mutate})};
  for (const auto& make : populations) {
    const auto scheduler = make({"loss", Min}, 1);
    HandMadeTrials trials;
    trials.to_come = 0;
    for (TrialId id = 0; id < 2; ++id) trials.begin(id);
    for (std::int64_t t = 1; t <= 3; ++t) CHECK(goes_on(silent(trials, *scheduler, 1, t)));
    CHECK(pauses(trials.report(*scheduler, 0, 3, 2)));
    CHECK(std::holds_alternative<Nobody>(scheduler->on_place({trials.all, 0})));
    CHECK(goes_on(trials.report(*scheduler, 1, 4, 1)));
    // The worse one takes over what the better one had at its first report behind the interval.
    const auto turn = scheduler->on_place({trials.all, 0});
    const auto* resume = std::get_if<Resume>(&turn);
    REQUIRE(resume);
    REQUIRE(resume->exploit);
    CHECK(resume->exploit->donor == 1);
    CHECK(resume->exploit->checkpoint_t == 4);
  }
}

}  // namespace sparse_metric_test
