#include "plan/room.hpp"

#include <catch2/catch.hpp>

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
  CHECK(fitting({.cpus = 5}) == 0);
  CHECK(ranks_that_fit({}, {}, {}) == 0);
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
