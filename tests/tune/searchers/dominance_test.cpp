#include "objectives/dominance.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/random.hpp>

#include "objectives/front.hpp"

namespace dominance_test {

using namespace troupe::tune;

namespace {

constexpr auto kInfinity = std::numeric_limits<double>::infinity();
using Fronts = std::vector<std::vector<std::size_t>>;

Trial trial_with(TrialId id, std::vector<double> values, Status status = Status::Terminated) {
  const bool has_value = !values.empty() && std::isfinite(values.front());
  return {.id = id,
          .status = status,
          .best = has_value ? std::optional(values.front()) : std::nullopt,
          .values = std::move(values)};
}

}  // namespace

TEST_CASE("a trial dominates another one if it is nowhere worse and somewhere better",
          "[tune][pareto]") {
  CHECK(dominates({1, 2}, {1, 1}));
  CHECK(dominates({2, 2}, {1, 1}));
  CHECK_FALSE(dominates({1, 1}, {1, 1}));
  CHECK_FALSE(dominates({2, 0}, {1, 1}));
  CHECK_FALSE(dominates({1, 1}, {1, 2}));
  CHECK(dominates({-1e300, -1e300}, {-kInfinity, -kInfinity}));
}

TEST_CASE("the non-dominated sort peels one front after the other", "[tune][pareto]") {
  //   5 |0         the first front is 0, 2, 5; without it 1 and 4; then 3
  //   4 |    2
  //   3 |  1
  //   2 |        5
  //   1 |  3   4
  //      1 2 3 4 5
  CHECK(non_dominated_fronts({{1, 5}, {2, 3}, {3, 4}, {2, 1}, {4, 1}, {5, 2}}) ==
        Fronts{{0, 2, 5}, {1, 4}, {3}});
  CHECK(non_dominated_fronts({{1, 1}, {1, 1}, {0, 1}}) == Fronts{{0, 1}, {2}});
  CHECK(non_dominated_fronts({{1}, {3}, {2}, {3}}) == Fronts{{1, 3}, {2}, {0}});
  CHECK(non_dominated_fronts({}).empty());
}

TEST_CASE("of many random points each front is dominated by none but those before it",
          "[tune][pareto]") {
  Random random(3);
  std::vector<Scores> all;
  for (int i = 0; i < 200; ++i)
    all.push_back({double(random.below(20)), double(random.below(20)), double(random.below(20))});
  const auto fronts = non_dominated_fronts(all);
  REQUIRE(fronts.size() > 3);
  std::size_t count = 0;
  for (std::size_t front = 0; front < fronts.size(); ++front) {
    count += fronts[front].size();
    for (const auto i : fronts[front]) {
      const auto is_above = [&](std::size_t j) { return dominates(all[j], all[i]); };
      REQUIRE(std::ranges::none_of(fronts[front], is_above));
      if (front > 0) REQUIRE(std::ranges::any_of(fronts[front - 1], is_above));
    }
  }
  CHECK(count == all.size());
}

TEST_CASE("the crowding distance is the sum of the neighbours' distances", "[tune][pareto]") {
  // Extents 10 and 100: the second point has (4 - 0) / 10 + (100 - 20) / 100.
  const auto distances = crowding_distances({{0, 100}, {1, 90}, {4, 20}, {10, 0}});
  CHECK(distances[0] == kInfinity);
  CHECK(distances[1] == Approx(0.4 + 0.8));
  CHECK(distances[2] == Approx(0.9 + 0.9));
  CHECK(distances[3] == kInfinity);
}

TEST_CASE("a front of equals, of one and of failures has no crowding distances", "[tune][pareto]") {
  CHECK(crowding_distances({{1, 2}, {1, 2}}) == std::vector<double>{0, 0});
  CHECK(crowding_distances({{1, 2}}) == std::vector<double>{0});
  CHECK(crowding_distances({{-kInfinity, -kInfinity}, {-kInfinity, -kInfinity}}) ==
        std::vector<double>{0, 0});
  CHECK(crowding_distances({}).empty());
}

TEST_CASE("the front of a run leaves out what failed and what is not finite", "[tune][pareto]") {
  const std::vector<Objective> objectives{{"loss", Min}, {"accuracy", Max}};
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Trial> trials{trial_with(0, {3, 0.9}), trial_with(1, {1, 0.5}),
                                  trial_with(2, {2, 0.4}), trial_with(3, {0, 1}, Status::Errored),
                                  trial_with(4, {nan, 1}), trial_with(5, {0, kInfinity}),
                                  trial_with(6, {}),       trial_with(7, {1, 0.5}, Status::Stopped),
                                  trial_with(8, {1, 0.4})};
  CHECK(pareto_front(trials, objectives[0], objectives) == std::vector<TrialId>{1, 7, 0});
}

TEST_CASE("the front of a run with one objective are its best trials", "[tune][pareto]") {
  std::vector<Trial> trials(4);
  for (TrialId id = 0; id < 4; ++id) trials[id].id = id;
  trials[0].best = 2;
  trials[1].best = 1;
  trials[3].best = 1;
  CHECK(pareto_front(trials, {"loss", Min}, {}) == std::vector<TrialId>{1, 3});
  CHECK(pareto_front(trials, {"loss", Max}, {}) == std::vector<TrialId>{0});
}

}  // namespace dominance_test
