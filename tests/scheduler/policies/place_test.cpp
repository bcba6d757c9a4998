#include "policies/place.hpp"

#include <catch2/catch.hpp>

#include "policies/nodes_for_test.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {
Need need(const Resources& resources, Labels labels = {}) {
  return {resources, std::move(labels), false};
}
}  // namespace

TEST_CASE("what no node has is refused with what is missing and the closest node",
          "[scheduler][closest_node]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}).add({{"cpu", 2}}, 1);
  CHECK(impossible(place({need({{"gpu", 4}})}, nodes.candidates())) ==
        "no node has gpu 4; the closest is 'b' (node 2) with gpu 1: lacks gpu 3");
  CHECK(impossible(place({need({{"cpu", 4}, {"gpu", 1}, {"tape", 1}})}, nodes.candidates())) ==
        "no node has cpu 4, gpu 1, tape 1; the closest is 'b' (node 2) with cpu 2, tape 0: lacks "
        "cpu 2, tape 1");
}

TEST_CASE("a GPU and a half is refused by what it is", "[scheduler][place]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 8}}, 8);
  CHECK(impossible(place({need({{"gpu", 1.5}})}, nodes.candidates())) ==
        "gpu 1.5 is neither a part of one GPU nor a whole number of them");
}

TEST_CASE("only nodes with all labels are looked at", "[scheduler][labels]") {
  const auto nodes = NodesForTest{}
                         .add({{"cpu", 8}}, 0, {{"disk", "ssd"}, {"zone", "a"}})
                         .add({{"cpu", 2}}, 0, {{"disk", "ssd"}, {"zone", "b"}});
  CHECK(chosen(place({need({{"cpu", 1}}, {{"zone", "b"}})}, nodes.candidates())) ==
        std::vector<NodeId>{2_node});
  CHECK(impossible(place({need({{"cpu", 4}}, {{"zone", "b"}})}, nodes.candidates())) ==
        "no node has cpu 4 with label zone=b; the closest is 'b' (node 2) with cpu 2: lacks cpu 2");
  CHECK(impossible(
            place({need({{"cpu", 1}}, {{"disk", "ssd"}, {"zone", "c"}})}, nodes.candidates())) ==
        "no node has disk=ssd, zone=c; the closest is 'a' (node 1) with disk=ssd, zone=a");
}

TEST_CASE("what waits says what is free on the closest node", "[scheduler][place]") {
  const auto nodes = NodesForTest{}.add({{"cpu", 2}}).taken({{"cpu", 1.5}});
  CHECK(waits(place({need({{"cpu", 1}})}, nodes.candidates())) ==
        "cpu 1 is free on no node now; the closest is 'a' (node 1) with cpu 0.5: lacks cpu 0.5");
}

TEST_CASE("parts of several GPUs are not a whole one", "[scheduler][place]") {
  const auto nodes = NodesForTest{}.add({}, 2).taken({{"gpu", 0.6}}).taken({{"gpu", 0.6}});
  CHECK(waits(place({need({{"gpu", 0.7}})}, nodes.candidates())) ==
        "gpu 0.7 is free on no node now; the closest is 'a' (node 1) with gpu 0.8, in parts of "
        "several GPUs");
}
