#include <catch2/catch.hpp>

#include "policies/nodes_for_test.hpp"
#include "policies/strict_pack.hpp"
#include "policies/strict_spread.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("strictly packed: all ranks go to the fullest node that holds them all",
          "[scheduler][strict_pack]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}).add({{"cpu", 3}}).add({{"cpu", 2}});
  CHECK(chosen(place_strictly_packed({kCore, 3}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 2_node, 2_node});
}

TEST_CASE("strictly packed: two nodes with half the room each are not one",
          "[scheduler][strict_pack]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 2}}).add({{"cpu", 4}}).taken({{"cpu", 3}});
  CHECK(waits(place_strictly_packed({kCore, 3}, nodes.candidates())) ==
        "no node holds 3 ranks of cpu 1 now; the closest is 'a' (node 1), which holds 2");
  CHECK(
      impossible(place_strictly_packed({kCore, 6}, nodes.candidates())) ==
      "no node holds 6 ranks of cpu 1 even when idle; the closest is 'b' (node 2), which holds 4");
}

TEST_CASE("strictly spread: each rank has a node of its own, and emptier nodes are left alone",
          "[scheduler][strict_spread]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}).add({{"cpu", 1}}).add({{"cpu", 2}});
  CHECK(chosen(place_strictly_spread({kCore, 2}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 3_node});
}

TEST_CASE("strictly spread: more ranks than nodes are impossible, more than free nodes wait",
          "[scheduler][strict_spread]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}).add({{"cpu", 1}}).taken({{"cpu", 1}});
  CHECK(waits(place_strictly_spread({kCore, 2}, nodes.candidates())) ==
        "2 ranks of cpu 1 need as many nodes, and 1 has room for one now");
  CHECK(impossible(place_strictly_spread({kCore, 3}, nodes.candidates())) ==
        "3 ranks of cpu 1 need as many nodes, and 2 have room for one even when idle");
}
