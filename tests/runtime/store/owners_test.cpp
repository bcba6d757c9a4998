#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/catalog/owners.hpp"

using namespace troupe::store;

TEST_CASE("the end of an owner names its objects, and is remembered until it returns",
          "[store][catalog][owners]") {
  Owners owners;
  owners.add({1_process, 1}, 7_process, 1_process);
  owners.add({1_process, 2}, 8_process, 1_process);
  CHECK_FALSE(owners.has_ended(7_process));

  const auto lost = owners.end(7_process);
  CHECK(lost == std::vector<ObjectId>{{1_process, 1}});
  CHECK(owners.has_ended(7_process));
  CHECK_THROWS(owners.check());  // until they are removed
  owners.remove({1_process, 1}, 7_process, 1_process);
  owners.check();
  CHECK(owners.end(7_process).empty());
  CHECK(owners.owns(8_process, {1_process, 2}));

  owners.returns(7_process);
  CHECK_FALSE(owners.has_ended(7_process));
}

TEST_CASE("an owner that was never heard of can end", "[store][catalog][owners]") {
  Owners owners;
  CHECK(owners.end(9_process).empty());
  CHECK(owners.has_ended(9_process));
  CHECK_FALSE(owners.has_ended(8_process));
  CHECK_FALSE(owners.has_ended(10_process));
}

TEST_CASE("a writer that ends leaves what others own and nobody has freed",
          "[store][catalog][owners]") {
  Owners owners;
  owners.add({1_process, 1}, 1_process, 1_process);  // its own
  owners.add({1_process, 2}, 7_process, 1_process);
  owners.add({1_process, 3}, 7_process, 1_process);
  owners.add({1_process, 4}, 8_process, 1_process);
  owners.add({2_process, 1}, 7_process, 2_process);  // another's
  owners.add({9_process, 1}, 7_process, {});         // a copy
  owners.remove({1_process, 3}, 7_process, 1_process);

  const auto left = owners.end_writer(1_process);
  CHECK(left == std::map<ProcessId, std::vector<ObjectId>>{{7_process, {{1_process, 2}}},
                                                           {8_process, {{1_process, 4}}}});
  CHECK(owners.end_writer(1_process).empty());  // it was told
  owners.remove({1_process, 2}, 7_process, 1_process);
  owners.check();
  CHECK(owners.size() == 4);
}

TEST_CASE("owners agree with a table, whoever writes, frees and ends",
          "[store][catalog][owners][property]") {
  struct Known {
    ProcessId owner, writer;
    bool told;  // its writer has ended
  };
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Owners owners;
  std::map<ObjectId, Known> model;
  std::uint64_t last_number = 0;
  const auto free = [&](ObjectId object) {
    const auto known = model.extract(object).mapped();
    owners.remove(object, known.owner, known.writer);
  };
  for (int i = 0; i < 500; ++i) {
    const ProcessId process(1 + random() % 6);
    const auto dice = random() % 20;
    if (dice < 10) {
      const ProcessId writer(random() % 4);
      if (owners.has_ended(process)) owners.returns(process);
      const ObjectId object{9_process, ++last_number};
      owners.add(object, process, writer);
      model[object] = {process, writer, false};
    } else if (dice < 17 && !model.empty()) {
      free(std::next(model.begin(), static_cast<long>(random() % model.size()))->first);
    } else if (dice < 18) {
      const auto lost = owners.end(process);
      REQUIRE(lost.size() ==
              static_cast<std::size_t>(std::ranges::count_if(
                  model, [&](const auto& one) { return one.second.owner == process; })));
      for (const auto& object : lost) free(object);
    } else {
      std::size_t left = 0;
      for (const auto& [owner, objects] : owners.end_writer(process)) {
        for (const auto& object : objects) REQUIRE(model.at(object).owner == owner);
        left += objects.size();
      }
      std::size_t expected = 0;
      for (auto& [object, known] : model) {
        if (known.writer != process) continue;
        expected += known.owner != process && !known.told ? 1 : 0;
        known.told = true;
      }
      REQUIRE(left == expected);
    }
    owners.check();
    REQUIRE(owners.size() == model.size());
  }
}
