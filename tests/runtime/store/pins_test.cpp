#include <algorithm>
#include <cstddef>
#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/catalog/pins.hpp"

using namespace troupe::store;

TEST_CASE("a process has an object pinned until it has taken back every pin",
          "[store][catalog][pins]") {
  Pins pins;
  PinCounts counts;
  const ObjectId object{1_process, 1};
  for (int i = 0; i < 3; ++i) pins.pin(object, counts, 2_process);
  pins.pin(object, counts, 1_process);

  CHECK_FALSE(pins.unpin(object, counts, 2_process, 2));
  CHECK(counts.of(2_process) == 1);
  CHECK(pins.unpin(object, counts, 2_process, 100));  // more than it has
  CHECK_FALSE(pins.has_any(2_process));
  CHECK(counts.of(1_process) == 1);
  CHECK_FALSE(counts.empty());
  CHECK(pins.unpin(object, counts, 1_process, 1));
  CHECK(counts.empty());
}

TEST_CASE("a process takes back no pin that it does not have", "[store][catalog][pins]") {
  Pins pins;
  PinCounts counts;
  pins.pin({1_process, 1}, counts, 1_process);

  CHECK_FALSE(pins.unpin({1_process, 1}, counts, 2_process, 1));
  CHECK_FALSE(pins.unpin({1_process, 1}, counts, 1_process, 0));
  CHECK(counts.of(1_process) == 1);
  pins.check({1_process, 1}, counts);
  pins.check_total(1);
}

TEST_CASE("pins that an object lists and its process does not know are found",
          "[store][catalog][pins]") {
  Pins pins, others;
  PinCounts counts;
  others.pin({1_process, 1}, counts, 1_process);
  CHECK_THROWS(pins.check({1_process, 1}, counts));
  CHECK_THROWS(others.check_total(0));
}

TEST_CASE("both sides of the pins agree with a table, whoever pins what",
          "[store][catalog][pins][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Pins pins;
  std::map<ObjectId, PinCounts> counts;
  std::map<ProcessId, std::map<ObjectId, std::uint32_t>> model;
  for (int i = 0; i < 500; ++i) {
    const ObjectId object{1_process, 1 + random() % 6};
    const ProcessId process(1 + random() % 5);
    auto& mine = model[process];
    if (random() % 2 == 0) {
      pins.pin(object, counts[object], process);
      ++mine[object];
    } else if (random() % 10 == 0) {  // the process ends
      for (const auto& id : pins.of(process))
        REQUIRE(pins.unpin(id, counts[id], process, counts[id].of(process)));
      pins.forget(process);
      mine.clear();
    } else {
      const auto count = static_cast<std::uint32_t>(random() % 3);
      const auto left = mine[object] - std::min(mine[object], count);
      const bool was_pinned = mine[object] > 0;
      REQUIRE(pins.unpin(object, counts[object], process, count) == (was_pinned && left == 0));
      mine[object] = left;
    }
    std::erase_if(mine, [](const auto& pin) { return pin.second == 0; });
    std::size_t total = 0;
    for (const auto& [by, table] : model) {
      total += table.size();
      REQUIRE(pins.has_any(by) == !table.empty());
      REQUIRE(pins.of(by).size() == table.size());
      for (const auto& [id, of] : counts)
        REQUIRE(of.of(by) == (table.contains(id) ? table.at(id) : 0));
    }
    for (const auto& [id, of] : counts) pins.check(id, of);
    pins.check_total(total);
  }
}
