#include "policies/single.hpp"

#include <catch2/catch.hpp>

#include "policies/nodes_for_test.hpp"
#include "policies/pack.hpp"
#include "policies/spread.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

NodeId home(const Ask& ask, const NodesForTest& nodes) {
  const auto candidates = nodes.candidates();
  const auto* chosen = place_single(ask, candidates);
  return chosen == nullptr ? NodeId{0} : chosen->node;
}

NodesForTest five_nodes() {
  return NodesForTest{}
      .add({{"cpu", 8}})
      .taken({{"cpu", 4}})
      .add({{"cpu", 8}})
      .taken({{"cpu", 6}})
      .add({{"cpu", 8}})
      .add({{"cpu", 2}})
      .add({{"cpu", 1}})
      .taken({{"cpu", 1}});
}

}  // namespace

TEST_CASE(
    "a single process goes to the fullest node with room, or to the emptiest, of equals to the "
    "first",
    "[scheduler][single]") {
  CHECK(home({kCore, 1, Strategy::Pack}, five_nodes()) == 2_node);
  CHECK(home({kCore, 1, Strategy::Spread}, five_nodes()) == 3_node);
}

TEST_CASE(
    "a single process that needs nothing goes to the node with the fewest light ones for its CPUs",
    "[scheduler][single]") {
  const Need nothing{};
  const auto place = [&](std::size_t first, std::size_t second, std::size_t third) {
    const auto nodes = NodesForTest{}
                           .add({{"cpu", 2}})
                           .light(first)
                           .add({{"cpu", 8}})
                           .taken({{"cpu", 8}})  // which does not count
                           .light(second)
                           .add({{"cpu", 4}})
                           .light(third);
    CHECK(home({nothing, 1, Strategy::Spread}, nodes) == home({nothing}, nodes));
    return home({nothing}, nodes);
  };
  CHECK(place(0, 0, 0) == 1_node);
  CHECK(place(1, 0, 0) == 2_node);
  CHECK(place(1, 1, 0) == 3_node);
  CHECK(place(1, 1, 1) == 2_node);
  CHECK(place(1, 4, 1) == 3_node);
  CHECK(place(1, 4, 2) == 1_node);  // of equals the first
}

TEST_CASE("a single process has no home where no node has room", "[scheduler][single]") {
  const Need nine{{{"cpu", 9}}, {}, false};
  CHECK_FALSE(home({nine}, five_nodes()));
  CHECK_FALSE(home({kCore}, NodesForTest{}));
}

TEST_CASE("a single process goes where the policies for gangs would put a gang of one",
          "[scheduler][single]") {
  for (const double cpus : {0.5, 1.0, 2.0, 3.0, 8.0}) {
    const Need need{{{"cpu", cpus}}, {}, false};
    const auto nodes = five_nodes();
    CHECK(chosen(place_packed({need}, nodes.candidates())) == std::vector{home({need}, nodes)});
    const Ask spread{need, 1, Strategy::Spread};
    CHECK(chosen(place_spread(spread, nodes.candidates())) == std::vector{home(spread, nodes)});
  }
}
