#include "run/launch/slots.hpp"
#include "rounds.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

namespace slots_test {

using namespace troupe::tune;

TEST_CASE("the ranks of a search have the lowest free slots of their nodes", "[tune][slots]") {
  Slots slots;
  CHECK(slots.take(0, {"a", "a", "b"}) == std::vector<Place>{{"a", 0}, {"a", 1}, {"b", 0}});
  CHECK(slots.take(1, {"a"}) == std::vector<Place>{{"a", 2}});
  slots.give_back(0);
  CHECK(slots.take(2, {"b", "a", "a", "a"}) ==
        std::vector<Place>{{"b", 0}, {"a", 0}, {"a", 1}, {"a", 3}});
  slots.give_back(7);  // which has none
  slots.give_back(2);
  slots.give_back(2);
  CHECK(slots.take(3, {"a"}) == std::vector<Place>{{"a", 0}});
}

TEST_CASE("no two ranks ever have one slot (rule 1)", "[tune][slots]") {
  const auto seed = troupe::test::first_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Slots slots;
  std::map<TrialId, std::vector<Place>> held;
  for (int step = 0; step < 2000; ++step) {
    const TrialId trial = random() % 12;
    if (held.erase(trial) > 0) {
      slots.give_back(trial);
    } else {
      std::vector<std::string> nodes(1 + random() % 4);
      for (auto& node : nodes) node = std::string(1, static_cast<char>('a' + random() % 3));
      held[trial] = slots.take(trial, nodes);
    }
    std::set<std::pair<std::string, int>> all;
    std::size_t ranks = 0;
    for (const auto& [id, places] : held) {
      for (const auto& [node, slot] : places) all.emplace(node, slot);
      ranks += places.size();
    }
    REQUIRE(all.size() == ranks);
  }
}

}  // namespace slots_test
