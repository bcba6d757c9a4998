// HyperBand where the metric comes only now and then: its reports are behind the rungs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/hyperband.hpp>

#include "support/sparse_search.hpp"

namespace sparse_hyperband_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

bool pauses(const Decision& decision) { return std::holds_alternative<Pause>(decision); }

}  // namespace

TEST_CASE("hyperband trains one of nine trials to the end where the metric comes behind two rungs",
          "[tune][hyperband]") {
  HyperBand hyperband({.max_t = 9, .eta = 3}, {"loss", Min});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 9; ++id) {
    for (std::int64_t t = 1; t < 4; ++t) CHECK(goes_on(silent(trials, hyperband, id, t)));
    CHECK(pauses(trials.report(hyperband, id, 4, 1.0 + static_cast<double>(id))));
    if (id < 8) CHECK(reached(hyperband) == Counts{id + 1, 0, 0});
  }
  // The best three have come to t=3 with the report that they have, and the best of them goes on.
  CHECK(reached(hyperband) == Counts{9, 3, 0});
  REQUIRE(trials.place(hyperband) == TrialId{0});
  CHECK(trials.resumed.rung == 1);
  CHECK(trials.resumed.why ==
        "goes on from rung 1 (t=3) of bracket 0: loss 1 is among the best 1 of 3");
  CHECK_FALSE(trials.place(hyperband));
  CHECK(finishes(trials.report(hyperband, 0, 9, 1)));
  trials.end(hyperband, 0, Status::Terminated);
  CHECK(reached(hyperband) == Counts{9, 3, 1});
  CHECK_FALSE(trials.place(hyperband));
}

TEST_CASE("the last of a rung trains on in its place from the highest rung that it has passed",
          "[tune][hyperband]") {
  HyperBand hyperband({.max_t = 9, .eta = 3}, {"loss", Min});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 8; ++id) trials.report(hyperband, id, 5, 2);
  const auto last = trials.report(hyperband, 8, 4, 1);
  REQUIRE(goes_on(last));
  CHECK(rung_of(last) == 1);
  CHECK_FALSE(trials.place(hyperband));
}

TEST_CASE("trials whose metric comes with their last report alone are ranked in all rungs",
          "[tune][hyperband]") {
  HyperBand hyperband({.max_t = 9, .eta = 3}, {"loss", Min});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 9; ++id) {
    CHECK(finishes(trials.report(hyperband, id, 9, static_cast<double>(id))));
    trials.end(hyperband, id, Status::Terminated);
  }
  CHECK(reached(hyperband) == Counts{9, 3, 1});
  CHECK_FALSE(trials.place(hyperband));
}

TEST_CASE("in a bracket that is not filled too a report counts at one rung after the other",
          "[tune][hyperband]") {
  HyperBand hyperband({.max_t = 27, .eta = 3}, {"loss", Min});  // 27 begin
  HandMadeTrials trials;
  for (TrialId id = 0; id < 10; ++id) trials.report(hyperband, id, 4, static_cast<double>(id));
  CHECK_FALSE(trials.place(hyperband));  // others are to come
  trials.to_come = 0;
  const auto before = hyperband.save();
  auto busy = trials.all;
  for (auto& trial : busy) trial.in_flight = true;
  CHECK(std::holds_alternative<Over>(hyperband.on_place({busy, 0})));
  CHECK(hyperband.save() == before);
  REQUIRE(trials.place(hyperband) == TrialId{0});
  CHECK(trials.resumed.rung == 1);
  CHECK(reached(hyperband) == Counts{10, 3, 0, 0});
}

TEST_CASE("hyperband counts a trial that returns early with the last value that it reported",
          "[tune][hyperband]") {
  HyperBand hyperband({.max_t = 9, .eta = 3}, {"loss", Min});
  HandMadeTrials trials;
  for (TrialId id = 0; id < 9; ++id) trials.report(hyperband, id, 1, static_cast<double>(id));
  REQUIRE(trials.place(hyperband) == TrialId{0});
  silent(trials, hyperband, 0, 2);
  trials.end(hyperband, 0, Status::Terminated);
  CHECK(hyperband.rungs()[1].reached == 1);
  CHECK(hyperband.rungs()[1].not_finite == 0);
}

// Successive halving by hand, with what each trial has at each rung: who comes to it is a matter of the values alone.
TEST_CASE(
    "whatever reports have the metric, hyperband halves as the paper does with what trials "
    "have at the rungs",
    "[tune][hyperband]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    HyperBand hyperband({.max_t = 9, .eta = 3}, {"loss", Min});
    SparseSearch search(hyperband, seed, 17, 9);  // brackets of 9, 5 and 3
    search.run(1 + seed % 5);
    CAPTURE(seed);
    TrialId first = 0;
    std::size_t summary = 0;
    for (const auto& plan : hyperband.band()) {
      std::vector<TrialId> in_rung(plan.trials.front());
      for (auto& id : in_rung) id = first++;
      for (std::size_t rung = 0; rung < plan.t.size(); ++rung) {
        CAPTURE(rung);
        REQUIRE(hyperband.rungs()[summary++].reached == in_rung.size());
        const auto t = plan.t[rung];
        std::ranges::sort(in_rung, {},
                          [&](TrialId id) { return std::pair(search.value_at(id, t), id); });
        const auto kept = rung + 1 == plan.t.size() ? in_rung.size()
                                                    : std::max<std::size_t>(1, in_rung.size() / 3);
        for (auto id = in_rung.begin() + static_cast<std::ptrdiff_t>(kept); id != in_rung.end();
             ++id)
          REQUIRE(search.trained(*id) == search.report_at(*id, t));
        in_rung.resize(kept);
      }
      for (const auto id : in_rung) REQUIRE(search.trained(id) == 9);
    }
  }
}

}  // namespace sparse_hyperband_test
