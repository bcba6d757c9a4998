#include "growth/growth.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "growth/grow_after.hpp"

using namespace troupe::launch;
using namespace std::chrono_literals;

/// When an elastic gang grows. Numbers in the names are those of the invariants in the headers.
namespace growth_test {

constexpr RoomSeen kRoomForFour{.ranks = 4}, kNoRoom{};

/// Looks once each second that show the same. -> the goal then.
int look(Growth& growth, const std::optional<RoomSeen>& seen, int seconds) {
  for (int second = 0; second < seconds; ++second) growth.on_look(seen, 1s);
  return growth.goal();
}

/// The gang before has ended: for its goal, where it had one.
void form(Growth& growth, int ranks) {
  growth.on_ended(growth.goal() > 0);
  growth.on_formed(ranks);
}

/// One that has just become due.
Growth due() {
  Growth growth(6s, 8);
  growth.on_formed(2);
  CHECK(look(growth, kRoomForFour, 7) == 4);
  return growth;
}

}  // namespace growth_test

using namespace growth_test;

TEST_CASE("there is room while looks show it and nobody waits (room watch 1)", "[launch][growth]") {
  RoomWatch watch(2, 8, 10s);
  watch.see({.ranks = 2}, 1s);
  CHECK_FALSE(watch.has_room());
  watch.see({.ranks = 3}, 1s);
  CHECK(watch.has_room());
  watch.see({.ranks = 3, .others_wait = true}, 1s);
  CHECK_FALSE(watch.has_room());
  watch.see({.ranks = 3}, 1s);
  watch.miss();
  CHECK_FALSE(watch.has_room());
  RoomWatch full(8, 8, 10s);
  full.see({.ranks = 9}, 1s);
  CHECK_FALSE(full.has_room());
}

TEST_CASE(
    "room has lasted from the first look of those that show it without a break (room watch 2)",
    "[launch][growth]") {
  RoomWatch watch(2, 8, 10s);
  watch.see({.ranks = 4}, 9s);
  CHECK(watch.lasted() == 0s);
  watch.see({.ranks = 4}, 2s);
  watch.see({.ranks = 4}, 3s);
  CHECK(watch.lasted() == 5s);
  watch.see({.ranks = 2}, 1s);
  CHECK(watch.lasted() == 0s);
  watch.see({.ranks = 4}, 1s);
  CHECK(watch.lasted() == 0s);
}

TEST_CASE("a pause between two looks counts as the longest step at most (room watch 3)",
          "[launch][growth]") {
  RoomWatch watch(2, 8, 10s);
  watch.see({.ranks = 4}, 1s);
  watch.see({.ranks = 4}, 1h);
  CHECK(watch.lasted() == 10s);
}

TEST_CASE("there is room for as many ranks as each look had room for (room watch 4)",
          "[launch][growth]") {
  RoomWatch watch(2, 8, 10s);
  for (const int ranks : {12, 5, 7}) watch.see({.ranks = ranks}, 1s);
  CHECK(watch.ranks() == 5);
  RoomWatch capped(2, 8, 10s);
  capped.see({.ranks = 12}, 1s);
  CHECK(capped.ranks() == 8);
}

TEST_CASE("a gang has a goal once there was room for the wait (growth 1)", "[launch][growth]") {
  Growth growth(6s, 8);
  CHECK(look(growth, kRoomForFour, 10) == 0);  // there is no gang
  growth.on_formed(2);
  CHECK(look(growth, kRoomForFour, 6) == 0);
  CHECK(look(growth, RoomSeen{.ranks = 4, .others_wait = true}, 1) == 0);
  CHECK(look(growth, kRoomForFour, 6) == 0);
  CHECK(look(growth, std::nullopt, 1) == 0);
  CHECK(look(growth, kRoomForFour, 6) == 0);
  CHECK(look(growth, kRoomForFour, 1) == 4);
  CHECK(look(growth, RoomSeen{.ranks = 2}, 3) == 4);  // the ranks are being ended
  growth.on_formed(4);
  CHECK(growth.goal() == 0);
}

TEST_CASE("a goal is larger than the gang and at most the maximum (growth 2)", "[launch][growth]") {
  Growth growth(6s, 8);
  growth.on_formed(2);
  CHECK(look(growth, RoomSeen{.ranks = 2}, 20) == 0);
  CHECK(look(growth, RoomSeen{.ranks = 100}, 20) == 8);
}

TEST_CASE(
    "a gang that did not grow waits for twice as long, and one that grew as at first (growth 3)",
    "[launch][growth]") {
  auto growth = due();
  form(growth, 2);
  CHECK(growth.wait() == 12s);
  CHECK(look(growth, kNoRoom, 1) == 0);
  CHECK(look(growth, kRoomForFour, 12) == 0);
  CHECK(look(growth, kRoomForFour, 1) == 4);
  form(growth, 1);
  CHECK(growth.wait() == 24s);
  CHECK(look(growth, kRoomForFour, 25) == 4);
  form(growth, 4);
  CHECK(growth.wait() == 6s);

  Growth rare(2h, 8);
  for (Growth* each : {&growth, &rare}) {
    for (int round = 0; round < 20; ++round) {
      form(*each, 2);
      each->on_look(kNoRoom, each->step());
      for (int step = 0; each->goal() == 0; ++step) {
        REQUIRE(step < 100'000);
        each->on_look(kRoomForFour, each->step());
      }
    }
  }
  CHECK(growth.wait() == Growth::kLongestWait);
  CHECK(rare.wait() == 2h);
}

TEST_CASE("a gang that others make smaller each time grows ever more rarely (growth 3)",
          "[launch][growth]") {
  Growth growth(6s, 16);
  form(growth, 8);
  for (const auto wait : {12s, 24s, 48s}) {
    CHECK(look(growth, RoomSeen{.ranks = 10}, 1000) == 10);
    form(growth, 6);
    CHECK(growth.wait() == wait);
    CHECK(look(growth, RoomSeen{.ranks = 8}, 1000) == 8);
    form(growth, 8);  // which had been had already
    CHECK(growth.wait() == wait);
  }
  CHECK(look(growth, RoomSeen{.ranks = 9}, 1000) == 9);
  form(growth, 9);
  CHECK(growth.wait() == 6s);
}

TEST_CASE("a gang whose larger one never started has grown in vain (growth 3)",
          "[launch][growth]") {
  for (const bool was_formed : {true, false}) {
    auto growth = due();
    growth.on_ended(true);
    if (was_formed) {  // and its programs could not be started
      growth.on_formed(4);
      growth.on_ended(false);
    }
    growth.on_not_started();
    CHECK(growth.wait() == 12s);
    CHECK(growth.ranks() == 2);
    CHECK(growth.goal() == 0);
    CHECK_FALSE(growth.is_watching());
    growth.on_formed(2);
    CHECK(growth.wait() == 12s);
    CHECK(look(growth, kRoomForFour, 1000) == 0);
    CHECK(look(growth, RoomSeen{.ranks = 5}, 13) == 5);
    form(growth, 4);  // no gang of four has run before
    CHECK(growth.wait() == 6s);
  }
}

TEST_CASE("a failure leaves the wait as it is, and the gang without a goal (growth 4)",
          "[launch][growth]") {
  auto growth = due();
  growth.on_ended(false);
  CHECK(growth.goal() == 0);
  growth.on_formed(2);
  CHECK(growth.wait() == 6s);
  CHECK(look(growth, kRoomForFour, 3) == 0);
  growth.on_ended(false);
  growth.on_formed(2);
  CHECK(look(growth, kRoomForFour, 6) == 0);  // what was seen of the gang before does not count
}

TEST_CASE("nobody looks where no look can show anything (growth 5)", "[launch][growth]") {
  Growth growth(6s, 4);
  CHECK_FALSE(growth.is_watching());
  growth.on_formed(2);
  CHECK(growth.is_watching());
  look(growth, kRoomForFour, 7);
  CHECK_FALSE(growth.is_watching());
  growth.on_formed(4);
  CHECK_FALSE(growth.is_watching());
  growth.on_ended(false);
  CHECK_FALSE(growth.is_watching());
}

TEST_CASE("there are six looks in each wait at least, if the head answers (growth 6)",
          "[launch][growth]") {
  CHECK(Growth(6s, 8).step() == 1s);
  CHECK(Growth(30s, 8).step() == 5s);
  CHECK(Growth(1h, 8).step() == 5s);
  Growth growth(6s, 8);
  growth.on_formed(2);
  for (const auto step : {2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    look(growth, std::nullopt, 1);
    CHECK(growth.step() == step);
  }
  look(growth, kNoRoom, 1);
  CHECK(growth.step() == 1s);
  look(growth, std::nullopt, 1);
  growth.on_formed(2);
  CHECK(growth.step() == 1s);
}

TEST_CASE("room that could not be had counts again once there is more, or none (growth 7)",
          "[launch][growth]") {
  auto growth = due();
  form(growth, 2);
  CHECK(look(growth, kRoomForFour, 1000) == 0);
  SECTION("more") {
    CHECK(look(growth, RoomSeen{.ranks = 5}, 12) == 0);
    CHECK(look(growth, RoomSeen{.ranks = 5}, 1) == 5);
  }
  SECTION("none for a while") {
    look(growth, kNoRoom, 1);
    CHECK(look(growth, kRoomForFour, 12) == 0);
    CHECK(look(growth, kRoomForFour, 1) == 4);
  }
  SECTION("no answer, which says nothing") {
    look(growth, std::nullopt, 1);
    CHECK(look(growth, kRoomForFour, 1000) == 0);
  }
  SECTION("a failure that leaves the gang as large as it was") {
    form(growth, 2);
    CHECK(look(growth, kRoomForFour, 1000) == 0);
  }
  SECTION("a gang of another size") {
    form(growth, 1);
    CHECK(look(growth, kRoomForFour, 13) == 4);
  }
}

TEST_CASE("a gang that is formed anew has room where its own ranks are", "[launch][growth]") {
  const auto node = [](int number, double free, double gpus, const char* state = "ready") {
    return nlohmann::json{{"node", number},
                          {"state", state},
                          {"labels", {{"zone", number == 3 ? "b" : "a"}}},
                          {"total", {{"cpu", 16}, {"gpu", 16}}},
                          {"free", {{"cpu", free}, {"gpu", gpus}}}};
  };
  nlohmann::json status{{"nodes", {node(1, 0, 1), node(2, 3, 8), node(3, 9, 9)}},
                        {"pending", nlohmann::json::array()}};
  const std::vector<RankPlace> running{{.node = 1}, {.node = 1}, {.node = 2}};
  const RankNeeds needs{.cpus = 1, .gpus = 1, .labels = {{"zone", "a"}}};
  const auto seen = room_seen(status, needs, {}, running);
  CHECK(seen.ranks == 6);  // two on the first node, whose CPUs are all taken, four on the second
  CHECK_FALSE(seen.others_wait);
  CHECK(room_seen(status, needs, {.strategy = troupe::Strategy::StrictPack}, running).ranks == 4);
  CHECK(room_seen(status, needs, {.per_node = 2}, running).ranks == 4);
  status["pending"].push_back({{"request", 7}});
  CHECK(room_seen(status, needs, {}, running).others_wait);
  status["nodes"][1]["state"] = "drained for request 7";
  CHECK(room_seen(status, needs, {}, running).ranks == 2);
}

TEST_CASE("the option --grow-after is a number of seconds, or never", "[launch][growth]") {
  const GangSize elastic{.least = 2, .most = 8};
  CHECK(grow_after_s("2.5", elastic, 1) == 2.5);
  CHECK(grow_after_s("never", elastic, 1) == std::nullopt);
  CHECK(grow_after_s("", elastic, 1) == kGrowAfterS);
  CHECK(grow_after_s("", {}, 0) == kGrowAfterS);
  for (const auto* text : {"2.5", "never"}) {
    CHECK_THROWS_AS(grow_after_s(text, {}, 1), troupe::Refused);
    CHECK_THROWS_AS(grow_after_s(text, elastic, 0), troupe::Refused);
  }
}
