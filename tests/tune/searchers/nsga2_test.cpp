#include <troupe/tune/searchers/nsga2.hpp>

#include <set>

#include <catch2/catch.hpp>

#include <troupe/tune/searchers/repeated.hpp>

#include "searchers/given.hpp"
#include "searchers/nsga2/variation.hpp"
#include "support/several_objectives.hpp"
#include "text/json.hpp"

namespace nsga2_test {

using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
const SearchSpace kMixed{{"lr", loguniform(1e-4, 1)},       {"layers", integer(1, 12)},
                         {"kind", choice({"a", "b", "c"})}, {"width", ordinal({16, 32, 64, 128})},
                         {"noise", uniform(0, 1, 0.125)},   {"epochs", 7}};

TwoValues zdt1_of(const Configuration& configuration) { return zdt1(numbers_of(configuration)); }
TwoValues zdt2_of(const Configuration& configuration) { return zdt2(numbers_of(configuration)); }

/// An error, lowest at lr 0.01, many layers and kind "b", and a cost that grows with the model.
TwoValues mixed(const Configuration& configuration) {
  const auto lr = std::get<double>(configuration[0].second.value());
  const auto layers = static_cast<double>(std::get<std::int64_t>(configuration[1].second.value()));
  const auto kind = to_string(configuration[2].second);
  const auto width = static_cast<double>(std::get<std::int64_t>(configuration[3].second.value()));
  const auto noise = std::get<double>(configuration[4].second.value());
  const double error = std::abs(std::log10(lr) + 2) / 3 + (kind == "b" ? 0 : 0.5) +
                       std::abs(noise - 0.25) + 4 / (layers * std::log2(width));
  return {error, layers * std::log2(width) / 84};
}

std::unique_ptr<Searcher> made(Nsga2Options options, const SearchSpace& space,
                               std::uint64_t trials = 1000, std::uint64_t seed = 5) {
  return nsga2(options)(two_objectives(space, trials, seed));
}

}  // namespace

TEST_CASE("a hypervolume is the area that the points dominate", "[tune][nsga2]") {
  CHECK(hypervolume({{1, 2}, {2, 1}}, {3, 3}) == Approx(3));
  CHECK(hypervolume({{1, 2}, {2, 1}, {2, 2}, {4, 0}, {kNan, 0}}, {3, 3}) == Approx(3));
  CHECK(hypervolume({}, {3, 3}) == 0);
}

TEST_CASE("NSGA-II comes far nearer to the fronts of ZDT1 and ZDT2 than random search",
          "[tune][nsga2]") {
  const bool is_convex = GENERATE(true, false);
  CAPTURE(is_convex);
  const auto values = is_convex ? zdt1_of : zdt2_of;
  const auto space = cube(5, 0, 1);
  // Of the best front itself, below (1.1, 1.1): 0.21 + 2/3 and 0.21 + 1/3.
  const double whole = 0.21 + (is_convex ? 2.0 : 1.0) / 3;
  const auto area = [&](const SearcherFactory& searcher, std::size_t under_way) {
    return median_hypervolume(searcher, space, values, {1.1, 1.1}, 600, 11, under_way);
  };
  const auto found = area(nsga2({.population = 20}), 1);
  const auto at_once = area(nsga2({.population = 20}), 16);
  const auto random = area(random_search(), 1);
  CAPTURE(whole, found, at_once, random);
  CHECK(found > 0.8 * whole);
  CHECK(at_once > 0.6 * whole);
  CHECK(random < 0.2 * whole);
}

TEST_CASE("NSGA-II finds a larger front than random search over fields of every kind",
          "[tune][nsga2]") {
  int wins = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const auto found =
        hypervolume(searched(nsga2({.population = 20}), kMixed, mixed, 300, seed), {2, 1.1});
    const auto random = hypervolume(searched(random_search(), kMixed, mixed, 300, seed), {2, 1.1});
    wins += found > random ? 1 : 0;
  }
  CHECK(wins == 15);
}

TEST_CASE("trials that have no numbers do not change the area that the others dominate",
          "[tune][nsga2][constraints]") {
  const double nan = std::nan("");
  std::vector<TwoValues> numbers, all;
  for (int i = 0; i < 64; ++i) {
    const double first = (i * 37 % 64) / 64.0;
    numbers.emplace_back(first, 1 - first);
    all.emplace_back(first, 1 - first);
    all.insert(all.end(), {{nan, nan}, {first, nan}, {nan, first}, {first, -INFINITY}});
  }
  CHECK(hypervolume({{0, 0.5}, {nan, nan}, {0.5, 0}}, {1, 1}) == Approx(0.75));
  CHECK(hypervolume(all, {1, 1}) == Approx(hypervolume(numbers, {1, 1})));
}

TEST_CASE("NSGA-II finds the fronts of CONSTR and TNK by their constraints",
          "[tune][nsga2][constraints]") {
  const bool is_constr = GENERATE(true, false);
  CAPTURE(is_constr);
  auto* const problem = is_constr ? constr : tnk;
  const TwoValues reference = is_constr ? TwoValues{1.1, 10} : TwoValues{1.2, 1.2};
  // What the front dominates: CONSTR's by its formula, TNK's by a grid of a million points.
  const double all = is_constr ? 5.333 : 0.651;
  const auto area = [&](const SearcherFactory& searcher, bool is_told) {
    std::vector<double> areas;
    for (std::uint64_t seed = 0; seed < 11; ++seed)
      areas.push_back(
          hypervolume(searched_constrained(searcher, problem, 400, seed, is_told), reference));
    return median(areas);
  };
  const auto found = area(nsga2({.population = 20}), true);
  const auto untold = area(nsga2({.population = 20}), false);
  const auto random = area(random_search(), true);
  CAPTURE(found, untold, random);
  CHECK(all - found < 0.7 * (all - random));
  CHECK(all - found < 0.7 * (all - untold));
}

TEST_CASE("where no trial keeps to its constraints, NSGA-II comes nearer to them",
          "[tune][nsga2][constraints]") {
  auto setup = two_objectives(cube(3, 0, 1), 400, 5);
  setup.constraints = {{"c", AtMost, 0}};
  const auto searcher = nsga2({.population = 20})(setup);
  double first = 0, last = 0;
  for (TrialId trial = 0; trial < 400; ++trial) {
    const auto x = numbers_of(suggested(*searcher, trial));
    const double violation = 0.1 + x[0] + x[1] + x[2];
    (trial < 200 ? first : last) += violation;
    searcher->on_end(
        trial,
        {.best = -x[0], .last = -x[0], .t = 1, .values = {-x[0], -x[1]}, .violation = violation});
  }
  CHECK(last < 0.5 * first);
}

TEST_CASE("a trial without a finite objective is behind those that are beyond the limits",
          "[tune][nsga2][constraints]") {
  auto setup = two_objectives(cube(1, 0, 1), 100, 5);
  setup.constraints = {{"c", AtMost, 0}};
  const auto searcher = nsga2({.population = 4})(setup);
  for (TrialId trial = 0; trial < 8; ++trial) {
    suggested(*searcher, trial);
    const bool diverged = trial < 4;
    const double value = diverged ? std::nan("") : 1;
    searcher->on_end(trial, {.t = 1, .values = {value, 1}, .violation = diverged ? 0.0 : 0.5});
  }
  const auto saved = Json::parse(searcher->save());
  REQUIRE(saved.at("parents").size() == 4);
  for (const auto& parent : saved.at("parents")) CHECK(parent.at("trial") >= 4);
}

TEST_CASE(
    "NSGA-II goes on from a saved state with its violations, under the same constraints alone",
    "[tune][nsga2][constraints]") {
  auto setup = two_objectives(cube(2, 0, 1), 100, 5);
  setup.constraints = {{"c", AtMost, 0}};
  const auto make = nsga2({.population = 8});
  const auto end = [](Searcher& searcher, TrialId trial, const Configuration& configuration) {
    const auto [values, violation] = constr(numbers_of(configuration));
    searcher.on_end(trial, {.best = values.first,
                            .last = values.first,
                            .t = 1,
                            .errored = trial % 7 == 0,
                            .values = {values.first, values.second},
                            .violation = violation});
  };
  const auto searcher = make(setup), loaded = make(setup);
  for (TrialId trial = 0; trial < 30; ++trial) end(*searcher, trial, suggested(*searcher, trial));
  loaded->load(searcher->save());
  CHECK(loaded->save() == searcher->save());
  for (TrialId trial = 30; trial < 60; ++trial) {
    const auto suggestion = suggested(*searcher, trial);
    REQUIRE(suggested(*loaded, trial) == suggestion);
    for (auto* each : {searcher.get(), loaded.get()}) end(*each, trial, suggestion);
  }
  setup.constraints[0].limit = 1;
  CHECK_THROWS_WITH(make(setup)->load(searcher->save()), Catch::Contains("constraints is [{"));
}

TEST_CASE("NSGA-II with one objective is a genetic algorithm", "[tune][nsga2]") {
  const auto value = [](const Configuration& each) { return sphere(numbers_of(each)); };
  std::vector<double> found, random;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    found.push_back(
        lowest_so_far(nsga2({.population = 20}), cube(5, -5, 5), value, 600, seed).back());
    random.push_back(lowest_so_far(random_search(), cube(5, -5, 5), value, 600, seed).back());
  }
  CAPTURE(median(found), median(random));
  CHECK(median(found) < 0.05 * median(random));
}

TEST_CASE("NSGA-II draws its first generation as random search does, and then learns",
          "[tune][nsga2]") {
  const auto searcher = made({.population = 8}, kMixed);
  RandomSearcher random(kMixed, 5, 1000);
  for (TrialId trial = 0; trial < 12; ++trial)  // 12 under way at once: nobody waits
    CHECK(suggested(*searcher, trial) == suggested(random, trial));
  for (TrialId trial = 0; trial < 8; ++trial) end_with(*searcher, trial, TwoValues(trial, -1.0));
  CHECK_FALSE(suggested(*searcher, 12) == suggested(random, 12));
}

TEST_CASE("a trial that failed is no parent while there are others", "[tune][nsga2]") {
  const SearchSpace space{{"x", uniform(0, 1)}, {"kind", choice({"good", "bad"})}};
  const auto searcher = made({.population = 10, .mutation = 1e-9}, space);
  int good = 0;
  for (TrialId trial = 0; trial < 100; ++trial) {
    const bool is_good = to_string(suggested(*searcher, trial)[1].second) == "good";
    const auto how = trial % 3;
    if (is_good) {
      end_with(*searcher, trial, TwoValues(1e6, 1e6));
    } else if (how == 0) {
      end_with(*searcher, trial, TwoValues(-1, kNan));
    } else if (how == 1) {
      searcher->on_end(trial,
                       {.best = -1, .last = -1, .t = 1, .errored = true, .values = {-1, -1}});
    } else {
      searcher->on_end(trial, {.best = -1, .last = -1, .t = 1});  // no report had both
    }
    if (trial >= 60 && is_good) ++good;
  }
  CHECK(good > 25);  // of 40; twins are mutated
}

TEST_CASE("NSGA-II seldom tries a configuration twice (rule 8)", "[tune][nsga2]") {
  const SearchSpace space{{"a", integer(0, 15)}, {"b", choice({1, 2, 3, 4, 5, 6, 7, 8})}};
  const auto searcher = made({.population = 10, .crossover = 0.5}, space);
  std::set<std::string> seen;
  for (TrialId trial = 0; trial < 60; ++trial) {
    const auto configuration = suggested(*searcher, trial);
    seen.insert(to_string(configuration));
    const auto x = numbers_of(configuration);
    end_with(*searcher, trial, TwoValues(x[0], x[1] - x[0]));
  }
  CHECK(seen.size() > 45);  // of 60; without the rule 33 to 44
}

TEST_CASE("crossover stays between and around its parents, and mutation in the space",
          "[tune][nsga2]") {
  Random random(1);
  std::size_t between = 0;
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double child = crossed(0.2, 0.6, 15, random);
    REQUIRE((child >= 0 && child <= 1));
    between += child > 0.2 && child < 0.6 ? 1 : 0;
    sum += child;
  }
  CHECK(between == Approx(10'000).margin(300));  // half of them, by its definition
  CHECK(sum / 20'000 == Approx(0.4).margin(0.005));
  CHECK(crossed(0.3, 0.3, 15, random) == 0.3);

  double farthest = 0, mean = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double x = mutated(0.1, 20, random);
    REQUIRE((x >= 0 && x <= 1));
    farthest = std::max(farthest, std::abs(x - 0.1));
    mean += std::abs(x - 0.1) / 20'000;
  }
  CHECK(farthest > 0.2);
  CHECK(mean < 0.06);
}

TEST_CASE("a mutation moves a field of few values to another one", "[tune][nsga2]") {
  Random random(2);
  for (const auto& domain : {integer(0, 3), log_integer(1, 64), uniform(0, 1, 0.25),
                             ordinal({1, 2, 4}), choice({"a", "b", "c"}), integer(0, 1)}) {
    const Axis axis({"x", domain});
    std::set<std::string> seen;
    double x = axis.settled(0.5);
    for (int i = 0; i < 400; ++i) {
      const double before = x;
      mutate_field(axis, x, 20, random);
      CAPTURE(to_string(domain), to_string(axis.value_at(before)));
      REQUIRE_FALSE(axis.value_at(x) == axis.value_at(before));
      REQUIRE(axis.settled(x) == x);
      seen.insert(to_string(axis.value_at(x)));
    }
    CHECK(seen.size() >= std::min<std::size_t>(3, static_cast<std::size_t>(axis.values())));
  }
}

TEST_CASE("a saved NSGA-II suggests what the one that saved it does", "[tune][nsga2]") {
  const Nsga2Options options{.population = 10};
  const auto end = [](Searcher& searcher, TrialId trial, const Configuration& configuration) {
    end_with(searcher, trial, trial % 7 == 0 ? TwoValues(kNan, 1) : mixed(configuration));
  };
  for (TrialId until = 0; until < 45; ++until) {
    const auto searcher = made(options, kMixed), loaded = made(options, kMixed);
    std::vector<Configuration> begun;
    for (TrialId trial = 0; trial < until; ++trial) {
      begun.push_back(suggested(*searcher, trial));
      if (trial >= 3) end(*searcher, trial - 3, begun[trial - 3]);
    }
    loaded->load(searcher->save());
    REQUIRE(loaded->save() == searcher->save());
    for (TrialId trial = until; trial < until + 25; ++trial) {
      begun.push_back(suggested(*searcher, trial));
      REQUIRE(suggested(*loaded, trial) == begun.back());
      if (trial < 3) continue;
      for (const auto& each : {searcher.get(), loaded.get()})
        end(*each, trial - 3, begun[trial - 3]);
    }
    REQUIRE(loaded->save() == searcher->save());
  }
}

TEST_CASE("NSGA-II refuses the state of another search", "[tune][nsga2]") {
  const auto searcher = made({}, kMixed), other_options = made({.population = 51}, kMixed);
  CHECK_THROWS_WITH(other_options->load(searcher->save()), Catch::Contains("population"));
  auto setup = two_objectives(kMixed, 1000, 5);
  setup.objectives[1].mode = Max;
  const auto other_objectives = nsga2()(setup);
  CHECK_THROWS_WITH(other_objectives->load(searcher->save()), Catch::Contains("objectives is"));
  CHECK_THROWS_AS(searcher->load("{}"), std::invalid_argument);
  auto broken = searcher->save();
  broken.replace(broken.find("\"ended\""), 7, "\"edned\"");
  CHECK_THROWS_AS(searcher->load(broken), std::invalid_argument);
}

TEST_CASE("NSGA-II begins with the results that are known and with given configurations",
          "[tune][nsga2]") {
  const auto space = cube(2, 0, 1);
  std::vector<GivenSearcher::Known> known;
  for (int i = 0; i < 20; ++i) {
    const double x = i / 20.0, near = i % 2 == 0 ? 0.9 : 0.1;
    known.push_back({{{"x0", x}, {"x1", near}}, x, {x, near > 0.5 ? 0 - x : 5 - x}});
  }
  GivenSearcher searcher(nsga2({.population = 10, .mutation = 1e-9})(two_objectives(space, 60, 1)),
                         {{{"x0", 0.5}, {"x1", 0.5}}}, known, 40);
  CHECK(numbers_of(suggested(searcher, 0)) == std::vector{0.5, 0.5});
  end_with(searcher, 0, TwoValues(9, 9));
  for (TrialId trial = 1; trial < 9; ++trial)
    CHECK(numbers_of(suggested(searcher, trial))[1] > 0.5);  // of the better half that is known
}

TEST_CASE("NSGA-II learns the means of repeated trials", "[tune][nsga2]") {
  const auto searcher =
      repeated(nsga2({.population = 4}), 2)(two_objectives({{"x", uniform(0, 1)}}, 200, 1));
  double last = 0;
  for (TrialId trial = 0; trial < 200; ++trial) {
    const double x = numbers_of(suggested(*searcher, trial))[0], noise = trial % 2 == 0 ? 9 : -9;
    const auto saved = searcher->save();
    end_with(*searcher, trial, TwoValues(x + noise, x - noise));
    if (trial >= 180) last += x / 20;
    if (trial % 20 == 0) {
      searcher->load(saved);
      end_with(*searcher, trial, TwoValues(x + noise, x - noise));
    }
  }
  CHECK(last < 0.1);  // random search: 0.5
}

TEST_CASE("NSGA-II ends with its trials, and refuses what it has no use for", "[tune][nsga2]") {
  const auto searcher = made({}, kMixed, 3);
  CHECK(searcher->size() == 3);
  suggested(*searcher, 2);
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(3)));
  CHECK_THROWS_WITH(made({}, kMixed, 0), Catch::Contains("tune::nsga2"));
  CHECK_THROWS_WITH(made({}, {{"epochs", 7}}),
                    Catch::Contains("no field with more than one value"));
  CHECK_THROWS_WITH(nsga2({.population = 1}), Catch::Contains(".population is 1, at least 2"));
  CHECK_THROWS_WITH(nsga2({.crossover = 1.5}), Catch::Contains(".crossover is 1.5, 0 to 1"));
  CHECK_THROWS_WITH(nsga2({.mutation = -1}), Catch::Contains(".mutation is -1, 0 to 1"));
  CHECK_THROWS_WITH(nsga2({.mutation_index = kNan}), Catch::Contains(".mutation_index is nan"));
}

}  // namespace nsga2_test
