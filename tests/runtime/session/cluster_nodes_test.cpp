// What a driver learns of the nodes of its cluster, and of those of its gangs.
#include <troupe/detail/cluster_nodes.hpp>

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <troupe/troupe.hpp>
#include "guard.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

struct Placed {
  std::uint32_t node() const { return this_gang()->node(); }
};

bool has_come(const detail::ObjectPtr& answer) {
  return detail::wait_objects(std::vector{answer}, 1, kGuard) == 1;
}

/// Asked in a worker process, which has no connection to the head of its own.
bool may_ask() { return detail::ask_for_nodes() != nullptr; }

}  // namespace

TEST_CASE("a driver is told of its nodes, and what they have", "[runtime][session][nodes]") {
  CHECK(detail::ask_for_nodes() == nullptr);  // in no cluster
  const auto cluster = init({.cpus = 3, .gpus = 2});
  // Two questions at once, and a third of another kind: each has its own answer.
  const auto first = detail::ask_for_nodes(), second = detail::ask_for_nodes();
  const auto status = nlohmann::json::parse(cluster.status_json());
  REQUIRE(has_come(first));
  REQUIRE(has_come(second));
  const auto nodes = detail::nodes_in(first);
  REQUIRE(nodes.size() == 1);
  CHECK(detail::nodes_in(second).size() == 1);
  CHECK(nodes[0].name == status["nodes"][0]["name"]);
  CHECK(nodes[0].number == status["nodes"][0]["node"]);
  CHECK(nodes[0].cpus == 3);
  CHECK(nodes[0].gpus == 2);
  CHECK_FALSE(task<may_ask>().get(kGuard));
}

TEST_CASE("the nodes of a gang's ranks are known once it is placed", "[runtime][session][nodes]") {
  const auto cluster = init({.cpus = 2});
  const auto placed = gang<Placed>({.size = 2});
  std::vector<detail::ActorPtr> ranks;
  for (const auto& rank : placed) ranks.push_back(rank.state());
  const auto nodes = detail::nodes_of(ranks);
  REQUIRE(nodes.size() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(placed.rank(rank).call<&Placed::node>().get(kGuard) == nodes[rank]);
  const std::vector alone{spawn<Placed>().state()};
  CHECK(detail::nodes_of(alone).empty());
}
