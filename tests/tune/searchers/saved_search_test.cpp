#include "searchers/saved_search.hpp"

#include <catch2/catch.hpp>

namespace saved_search_test {

using namespace troupe::tune;

namespace {

SearchSetup setup() {
  return {.space = {{"lr", uniform(0, 1)}, {"batch", choice({32, 64})}},
          .objective = {"loss", Min},
          .seed = 5,
          .trials = 20};
}

Json loaded(const SearchSetup& other) {
  auto saved = search_identity("tpe", other);
  saved["state"] = 7;
  Json found;
  load_search(dump(saved), search_identity("tpe", setup()),
              [&](const Json& json) { found = json; });
  return found;
}

}  // namespace

TEST_CASE("a searcher takes up the state of its own search", "[tune][searcher]") {
  CHECK(loaded(setup()).at("state") == 7);
}

TEST_CASE("a state of another search is refused with what differs", "[tune][searcher]") {
  auto other = setup();
  other.seed = 6;
  CHECK_THROWS_WITH(loaded(other), "saved by another search: seed is 6 there, 5 here");
  other = setup();
  other.objective.mode = Max;
  CHECK_THROWS_WITH(loaded(other), "saved by another search: mode is \"max\" there, \"min\" here");
  other = setup();
  std::swap(other.space[0], other.space[1]);
  CHECK_THROWS_WITH(loaded(other), Catch::StartsWith("saved by another search: space is {\"batch"));
}

TEST_CASE("a search takes up the state of one with fewer trials, and of none with more",
          "[tune][searcher]") {
  auto other = setup();
  other.trials = 12;
  CHECK(loaded(other).at("state") == 7);
  other.trials = 21;
  CHECK_THROWS_WITH(loaded(other), "saved by another search: trials is 21 there, 20 here");
}

TEST_CASE("what is no searcher's state is refused", "[tune][searcher]") {
  const auto identity = search_identity("tpe", setup());
  const auto take_up = [](const Json& json) { json.at("trials_seen").get<int>(); };
  CHECK_THROWS_WITH(load_search("[1]", identity, take_up), "not a searcher's state: '[1]'");
  CHECK_THROWS_WITH(load_search("{", identity, take_up), "not a searcher's state: '{'");
  CHECK_THROWS_WITH(load_search("{}", identity, take_up),
                    "saved by another search: searcher is null there, \"tpe\" here");
  CHECK_THROWS_WITH(load_search(dump(identity), identity, take_up),
                    Catch::StartsWith("not a searcher's state: "));
}

}  // namespace saved_search_test
