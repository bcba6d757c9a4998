#include "policies/spread.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "policies/nodes_for_test.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("spread: a single process goes to the emptiest node", "[scheduler][spread]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}).taken({{"cpu", 5}}).add({{"cpu", 4}});
  CHECK(chosen(place_spread({kCore}, nodes.candidates())) == std::vector<NodeId>{2_node});
}

TEST_CASE("spread: a gang is dealt out evenly, and the ranks of a node follow each other",
          "[scheduler][spread]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 1}}).add({{"cpu", 4}}).add({{"cpu", 4}});
  CHECK(chosen(place_spread({kCore, 3}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 3_node, 1_node});
  CHECK(chosen(place_spread({kCore, 7}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 2_node, 2_node, 3_node, 3_node, 3_node, 1_node});
}

TEST_CASE("spread: a gang that no cluster of these nodes could hold is impossible",
          "[scheduler][spread]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 1}}).add({{"cpu", 2}});
  CHECK(impossible(place_spread({kCore, 4}, nodes.candidates())) ==
        "all nodes together hold 3 of the 4 ranks of cpu 1, even when idle");
}
