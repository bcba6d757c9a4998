#include "policies/pack.hpp"

#include <catch2/catch.hpp>

#include "policies/nodes_for_test.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("packed: a single process goes to the fullest node that fits it", "[scheduler][pack]") {
  const auto nodes = NodesForTest{}
                         .add({{"cpu", 8}})
                         .add({{"cpu", 8}})
                         .taken({{"cpu", 6}})
                         .add({{"cpu", 1}})
                         .taken({{"cpu", 1}});
  CHECK(chosen(place_packed({kCore}, nodes.candidates())) == std::vector<NodeId>{2_node});
}

TEST_CASE(
    "packed: a gang takes as few nodes as can be, and the last one is the fullest that holds the "
    "rest",
    "[scheduler][pack]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 2}}).add({{"cpu", 4}}).add({{"cpu", 3}});
  CHECK(chosen(place_packed({kCore, 4}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 2_node, 2_node, 2_node});
  CHECK(chosen(place_packed({kCore, 6}, nodes.candidates())) ==
        std::vector<NodeId>{2_node, 2_node, 2_node, 2_node, 1_node, 1_node});
  CHECK(chosen(place_packed({kCore, 9}, nodes.candidates())).size() == 9);
}

TEST_CASE("packed: a gang is placed whole or waits whole", "[scheduler][pack]") {
  const auto nodes =
      NodesForTest{}.add({{"cpu", 2}}).taken({{"cpu", 1}}).add({{"cpu", 2}}).taken({{"cpu", 1}});
  CHECK(waits(place_packed({kCore, 3}, nodes.candidates())) ==
        "2 of its 3 ranks of cpu 1 have room now");
  CHECK(impossible(place_packed({kCore, 5}, nodes.candidates())) ==
        "all nodes together hold 4 of the 5 ranks of cpu 1, even when idle");
}
