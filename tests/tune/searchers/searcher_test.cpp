#include <troupe/tune/searcher.hpp>

#include <set>

#include <catch2/catch.hpp>

namespace searcher_test {

using namespace troupe::tune;

namespace {

std::vector<Configuration> all_of(Searcher& searcher) {
  std::vector<Configuration> all;
  while (true) {
    auto next = searcher.suggest(all.size());
    if (!std::holds_alternative<Configuration>(next)) return all;
    all.push_back(std::get<Configuration>(std::move(next)));
  }
}

const SearchSpace kSpace{
    {"lr", loguniform(1e-4, 1)}, {"batch", choice({32, 64})}, {"layers", integer(1, 4)}};

}  // namespace

TEST_CASE("a random search is a function of its seed and of nothing else", "[tune][searcher]") {
  RandomSearcher one(kSpace, 5, 20), same(kSpace, 5, 20), other(kSpace, 6, 20);

  const auto suggested = all_of(one);

  CHECK(suggested.size() == 20);
  CHECK(all_of(same) == suggested);
  CHECK(all_of(other) != suggested);
}

TEST_CASE("a field more in the space leaves the values of the others as they were",
          "[tune][searcher]") {
  auto wider = kSpace;
  wider.insert(wider.begin(), {"momentum", uniform(0, 1)});
  RandomSearcher narrow_search(kSpace, 5, 10), wide_search(wider, 5, 10);

  for (TrialId trial = 0; trial < 10; ++trial) {
    auto wide = std::get<Configuration>(wide_search.suggest(trial));
    wide.erase(wide.begin());
    CHECK(wide == std::get<Configuration>(narrow_search.suggest(trial)));
  }
}

TEST_CASE("a grid search takes every point of the product once, the first field fastest",
          "[tune][searcher]") {
  GridSearcher searcher({{"a", grid({1, 2, 3})}, {"b", grid({"x", "y"})}, {"c", 7}}, 1, 1);

  const auto suggested = all_of(searcher);

  CHECK(searcher.points() == 6);
  REQUIRE(suggested.size() == 6);
  CHECK(to_string(suggested[0]) == "a=1, b=x, c=7");
  CHECK(to_string(suggested[1]) == "a=2, b=x, c=7");
  CHECK(to_string(suggested[3]) == "a=1, b=y, c=7");
  CHECK(to_string(suggested[5]) == "a=3, b=y, c=7");
}

TEST_CASE("the random fields of a grid are drawn anew at every point and sample",
          "[tune][searcher]") {
  GridSearcher searcher({{"a", grid({1, 2, 3})}, {"lr", uniform(0, 1)}}, 1, 4);
  std::multiset<std::string> points;
  std::set<std::string> drawn;
  for (const auto& configuration : all_of(searcher)) {
    points.insert(to_string(configuration[0].second));
    drawn.insert(to_string(configuration[1].second));
  }
  CHECK(points.count("1") == 4);
  CHECK(points.count("2") == 4);
  CHECK(points.count("3") == 4);
  CHECK(drawn.size() == 12);
}

TEST_CASE("a number of trials ends a grid early or walks it again", "[tune][searcher]") {
  GridSearcher fewer({{"a", grid({1, 2, 3})}}, 1, 1, 2), more({{"a", grid({1, 2, 3})}}, 1, 1, 4);
  CHECK(all_of(fewer).size() == 2);
  const auto again = all_of(more);
  REQUIRE(again.size() == 4);
  CHECK(again[3] == again[0]);
}

TEST_CASE("a grid that nobody could walk is refused", "[tune][searcher]") {
  const std::vector<Scalar> thousand(1000, Scalar(1));
  const SearchSpace huge{
      {"a", grid(thousand)}, {"b", grid(thousand)}, {"c", grid(thousand)}, {"d", grid(thousand)}};
  CHECK_THROWS_WITH(GridSearcher(huge, 1, 1), "the grid has more than 1000000000 points");
  CHECK_THROWS_AS(GridSearcher(kSpace, 1, 0), std::invalid_argument);
}

TEST_CASE("a search takes up its own state and refuses another's", "[tune][searcher]") {
  RandomSearcher one(kSpace, 5, 20), same(kSpace, 5, 20), other(kSpace, 6, 20);
  CHECK_NOTHROW(same.load(one.save()));
  CHECK_THROWS_AS(other.load(one.save()), std::invalid_argument);
  CHECK_THROWS_AS(other.load("{"), std::invalid_argument);
}

}  // namespace searcher_test
