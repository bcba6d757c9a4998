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

TEST_CASE("who violates constraints less is in a lower front, whatever its scores",
          "[tune][pareto][constraints]") {
  const std::vector<Scores> all{{9, 9}, {1, 1}, {2, 0}, {8, 8}, {7, 7}, {0, 0}};
  const std::vector<double> violations{0.5, 0, 0, 0.25, 0.25, kInfinity};
  CHECK(non_dominated_fronts(all, violations) ==
        std::vector<std::vector<std::size_t>>{{1, 2}, {3}, {4}, {0}, {5}});
  CHECK(non_dominated_fronts(all, std::vector<double>(all.size())) == non_dominated_fronts(all));
}

TEST_CASE("a violation is how far a metric is beyond its limits", "[tune][constraints]") {
  CHECK(Constraint{"memory", AtMost, 8}.violation_of(8) == 0);
  CHECK(Constraint{"memory", AtMost, 8}.violation_of(12) == 0.5);
  CHECK(Constraint{"memory", AtMost, -8}.violation_of(-4) == 0.5);
  CHECK(Constraint{"accuracy", AtLeast, 0.5}.violation_of(0.25) == 0.5);
  CHECK(Constraint{"accuracy", AtLeast, 0.5}.violation_of(0.75) == 0);
  CHECK(Constraint{"gap", AtMost, 0}.violation_of(3) == 3);
  CHECK(Constraint{"gap", AtMost, 0}.violation_of(kInfinity) == kInfinity);
  CHECK(Constraint{"gap", AtLeast, 0}.violation_of(kInfinity) == 0);
  CHECK(Constraint{"gap", AtMost, 0}.violation_of(std::nan("")) == kInfinity);
  const std::vector<Constraint> both{{"memory", AtMost, 8}, {"accuracy", AtLeast, 0.5}};
  CHECK(violation_in(both, {{"memory", 12}, {"accuracy", 0.25}}) == 1.0);
  CHECK(violation_in(both, {{"memory", 4}, {"accuracy", 1}}) == 0.0);
  CHECK_FALSE(violation_in(both, {{"memory", 4}}));
  CHECK(violation_in({}, {{"memory", 4}}) == 0.0);
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

TEST_CASE("the front of a run leaves out what does not keep to its constraints",
          "[tune][pareto][constraints]") {
  const std::vector<Objective> objectives{{"loss", Min}, {"accuracy", Max}};
  std::vector<Trial> trials{trial_with(0, {3, 0.9}), trial_with(1, {1, 0.5})};
  trials[1].violation = 1e-9;
  CHECK(pareto_front(trials, objectives[0], objectives) == std::vector<TrialId>{0});
  trials[0].violation = 1;
  CHECK(pareto_front(trials, objectives[0], objectives).empty());
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
