#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "store/catalog/object_line.hpp"

#include "../../support/id_literals.hpp"

using namespace troupe::store;

TEST_CASE("objects of a line leave from anywhere, and the others keep their order",
          "[store][catalog][line]") {
  ObjectLine line;
  ObjectLine::Place first, second, third, urgent;
  line.join({1_process, 1}, first);
  line.join({1_process, 2}, second);
  line.join({1_process, 3}, third);

  line.leave(first);
  CHECK(line.front() == ObjectId{1_process, 2});
  line.join_front({1_process, 4}, urgent);
  CHECK(line.front() == ObjectId{1_process, 4});
  line.leave(urgent);
  line.leave(second);
  CHECK(line.front() == ObjectId{1_process, 3});
  line.leave(third);
  CHECK(line.empty());
}

TEST_CASE("an object that has left a line joins it at a new place, at the end",
          "[store][catalog][line]") {
  ObjectLine line;
  ObjectLine::Place first, second;
  line.join({1_process, 1}, first);
  line.join({1_process, 2}, second);
  const auto old = first;

  line.leave(first);
  CHECK_FALSE(first);
  line.leave(first);  // which it has
  line.join({1_process, 1}, first);

  CHECK(line.front() == ObjectId{1_process, 2});
  CHECK(line.holds({1_process, 1}, first));
  CHECK_FALSE(line.holds({1_process, 1}, old));
  CHECK_FALSE(line.holds({1_process, 2}, first));
}

TEST_CASE("a line agrees with a list, whoever joins and leaves",
          "[store][catalog][line][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  ObjectLine line;
  std::map<ObjectId, ObjectLine::Place> places;
  std::deque<ObjectId> model;
  for (int i = 0; i < 500; ++i) {
    const ObjectId object{1_process, random() % 20};
    auto& place = places[object];
    if (place) {
      line.leave(place);
      model.erase(std::ranges::find(model, object));
    } else if (random() % 4 == 0) {
      line.join_front(object, place);
      model.push_front(object);
    } else {
      line.join(object, place);
      model.push_back(object);
    }
    line.check();
    REQUIRE(line.size() == model.size());
    if (!model.empty()) REQUIRE(line.front() == model.front());
    for (const auto& [id, at] : places) REQUIRE(line.holds(id, at) == static_cast<bool>(at));
  }
  for (; !model.empty(); model.pop_front()) {  // invariant 1, to the end
    REQUIRE(line.front() == model.front());
    line.leave(places.at(model.front()));
  }
  REQUIRE(line.empty());
}
