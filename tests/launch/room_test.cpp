#include "plan/room.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "plan/status_nodes.hpp"
#include "words/shell_word.hpp"

using namespace troupe::launch;
using troupe::Strategy;

/// How many ranks have room, which is how large an elastic gang becomes.
namespace {

const std::vector<NodeRoom> kNodes{{.labels = {{"zone", "a"}}, .cpus = 4, .gpus = 1},
                                   {.labels = {{"zone", "b"}}, .cpus = 3, .memory_gb = 8},
                                   {.labels = {{"zone", "b"}, {"disk", "ssd"}}, .cpus = 0.5}};

int fitting(const RankNeeds& needs, const RankLayout& layout = {}) {
  return ranks_that_fit(needs, layout, kNodes);
}

}  // namespace

TEST_CASE("ranks have room where each need of theirs is met", "[launch]") {
  CHECK(fitting({.cpus = 1}) == 7);
  CHECK(fitting({.cpus = 0.5}) == 15);
  CHECK(fitting({.cpus = 1, .gpus = 0.5}) == 2);
  CHECK(fitting({.cpus = 1, .memory_gb = 4}) == 2);
  const std::vector<NodeRoom> gpus{{.cpus = 8, .gpus = 2.5}};
  CHECK(ranks_that_fit({.gpus = 0.6}, {}, gpus) == 2);
  CHECK(ranks_that_fit({.gpus = 0.5}, {}, gpus) == 5);
  CHECK(ranks_that_fit({.gpus = 0.1}, {}, gpus) == 8);
  CHECK(ranks_that_fit({.gpus = 2}, {}, gpus) == 1);
  CHECK(fitting({.cpus = 5}) == 0);
  CHECK(ranks_that_fit({}, {}, {}) == 0);
}

TEST_CASE("who asks for more ranks than have room is told each way to room", "[launch]") {
  const std::string more = "add a machine with `troupe worker`";
  const auto way = [](int ranks, const RankNeeds& needs, const RankLayout& layout = {}) {
    return way_to_room(ranks, needs, layout, kNodes);
  };
  CHECK(way(7, {.cpus = 1}).empty());
  CHECK(way(8, {.cpus = 1}) == "give -n 7, or --cpus 0.5 so that 8 ranks have room, or " + more);
  CHECK(way(20, {.cpus = 1}) == "give -n 7, or --cpus 0.25 so that 20 ranks have room, or " + more);
  CHECK(way(20, {.cpus = 5}) == "give --cpus 0.25 so that 20 ranks have room, or " + more);
  CHECK(way(1, {.cpus = 5}) == "give --cpus 4 so that 1 rank has room, or " + more);
  CHECK(way(2, {.cpus = 5}) == "give --cpus 3 so that 2 ranks have room, or " + more);
  CHECK(way(500, {.cpus = 0.25}) == "give -n 30, or " + more);
  CHECK(way(2, {.cpus = 1, .gpus = 1}) == "give -n 1, or " + more);
  CHECK(way(1, {.cpus = 1, .gpus = 2}) == more);
  CHECK(way(3, {.cpus = 1}, {.strategy = Strategy::StrictSpread}) ==
        "give -n 2, or --cpus 0.5 so that 3 ranks have room, or another --strategy, or " + more);
  CHECK(way(6, {.cpus = 1}, {.per_node = 3}) == "");
  CHECK(way(9, {.cpus = 1}, {.per_node = 3}) ==
        "give -n 6, or --cpus 0.1 so that 9 ranks have room, or " + more);
  CHECK(way_to_room(1, {.cpus = 1}, {}, {}).empty());
}

TEST_CASE("a value of --per-node that does not fit is answered with one that does", "[launch]") {
  const auto way = [](int ranks, const RankLayout& layout) {
    return way_to_room(ranks, {.cpus = 1}, layout, kNodes);
  };
  CHECK_THAT(way(6, {.per_node = 6}), Catch::StartsWith("give --per-node 3 so that 6 ranks have"));
  CHECK_THAT(way(6, {.per_node = 1}),
             Catch::StartsWith("give -n 2, or --per-node 3 so that 6 ranks have room, or "));
  CHECK_THAT(way(7, {.per_node = 7}), !Catch::Contains("--per-node"));
  CHECK_THAT(way(4, {.per_node = 5, .on_every_node = true}), !Catch::Contains("--per-node"));

  // Without -n each node has so many.
  const std::vector<NodeRoom> two(kNodes.begin(), kNodes.begin() + 2);
  const RankLayout each{.per_node = 4, .on_every_node = true};
  CHECK_THAT(way_to_room(8, {.cpus = 1}, each, two),
             Catch::StartsWith("give -n 4, or --per-node 3, or --cpus 0.5 so that 8 ranks have"));
}

TEST_CASE("a machine that is to be added has the labels that the ranks ask for, as shell words",
          "[launch]") {
  const auto way = [](std::string value, const std::vector<NodeRoom>& nodes) {
    return way_to_room(5, {.cpus = 1, .labels = {{"zone", "a"}, {"disk", std::move(value)}}}, {},
                       nodes);
  };
  CHECK(way("ssd", {}) == "add a machine with `troupe worker --label zone=a --label disk=ssd`");
  const NodeRoom node{.labels = {{"zone", "a"}, {"disk", "a b"}}, .cpus = 4};
  CHECK(way("a b", {node}) ==
        "give -n 4, or --cpus 0.5 so that 5 ranks have room, or add a machine with `troupe worker "
        "--label zone=a --label 'disk=a b'`");
}

TEST_CASE("a shell reads a word as it was meant", "[launch]") {
  CHECK(shell_word("zone=a") == "zone=a");
  CHECK(shell_word("=a") == "'=a'");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("it's") == "'it'\\''s'");
}

TEST_CASE("nodes without the labels have room for no rank", "[launch]") {
  CHECK(fitting({.cpus = 1, .labels = {{"zone", "a"}}}) == 4);
  CHECK(fitting({.cpus = 0.5, .labels = {{"zone", "b"}}}) == 7);
  CHECK(fitting({.cpus = 0.5, .labels = {{"zone", "b"}, {"disk", "ssd"}}}) == 1);
  CHECK(fitting({.cpus = 0.5, .labels = {{"zone", "c"}}}) == 0);
}

TEST_CASE("room is counted as the strategy and the ranks of a node have it", "[launch]") {
  CHECK(fitting({.cpus = 1}, {.strategy = Strategy::Spread}) == 7);
  CHECK(fitting({.cpus = 1}, {.strategy = Strategy::StrictPack}) == 4);
  CHECK(fitting({.cpus = 1}, {.strategy = Strategy::StrictSpread}) == 2);
  CHECK(fitting({.cpus = 1}, {.per_node = 1}) == 2);
  CHECK(fitting({.cpus = 1}, {.per_node = 2}) == 4);
  CHECK(fitting({.cpus = 1}, {.per_node = 4}) == 4);
  CHECK(fitting({.cpus = 1}, {.per_node = 5}) == 0);
  CHECK(fitting({.cpus = 1, .labels = {{"zone", "b"}}}, {.per_node = 2}) == 2);
}

TEST_CASE("a gang that starts is the own one where its driver has this process id", "[launch]") {
  const nlohmann::json status{
      {"jobs", {{{"job", 1}, {"pid", 70}}, {{"job", 2}, {"pid", 80}}}},
      {"gangs", {{{"job", 1}, {"state", "placed"}}, {{"job", 2}, {"state", "starting"}}}}};
  CHECK_FALSE(own_gang_starts(status, 70));
  CHECK(own_gang_starts(status, 80));
  CHECK_FALSE(own_gang_starts(status, 90));
}
