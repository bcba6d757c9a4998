#include "values/light_processes.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Nodes of 1, 2 and 4 CPUs, which may have three light processes for each.
struct Lightly {
  FewRecords records;
  LightProcesses light{3};
  Job& job = records.job();
  std::array<Node*, 3> nodes{&records.node(), &records.node(), &records.node()};

  Lightly() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i]->cpus = std::size_t{1} << i;
      light.on_node_joined(*nodes[i]);
    }
  }
  Process& start(Node& node) {
    auto& process = records.process(job, node);
    process.role = Role::Actor;
    light.add(process);
    return process;
  }
  void end(Process& process) {
    light.remove(process);
    process.role = Role::None;
  }
  std::vector<Node*> order() {
    std::vector<Node*> order;
    light.fewest_first([&](NodeId id) {
      for (auto* node : nodes) {
        if (node->id == id) order.push_back(node);
      }
      return true;
    });
    return order;
  }
  std::string wrong() const { return light.broken_invariant(records.nodes()).value_or("nothing"); }
};

}  // namespace

TEST_CASE("nodes stand by their light processes in relation to their CPUs, of equals the first",
          "[scheduler][light]") {
  Lightly lightly;
  auto* one = lightly.nodes[0];
  auto* two = lightly.nodes[1];
  auto* four = lightly.nodes[2];
  CHECK(lightly.order() == std::vector{one, two, four});
  std::array<int, 3> started{};
  for (int i = 0; i < 21; ++i) {
    auto* node = lightly.order().front();
    CHECK(lightly.light.has_room(*node));
    lightly.start(*node);
    ++started[node == one ? 0 : node == two ? 1 : 2];
  }
  CHECK(started == std::array{3, 6, 12});
  for (auto* node : lightly.nodes) CHECK_FALSE(lightly.light.has_room(*node));
  CHECK(lightly.wrong() == "nothing");
}

TEST_CASE("a node has room again once a light process of it has ended", "[scheduler][light]") {
  Lightly lightly;
  auto& node = *lightly.nodes[0];
  lightly.start(node);
  lightly.start(node);
  auto& third = lightly.start(node);
  CHECK_FALSE(lightly.light.has_room(node));
  lightly.end(third);
  CHECK(lightly.light.has_room(node));
  CHECK(lightly.wrong() == "nothing");
}

TEST_CASE("light processes that are miscounted, and nodes in the wrong place, are found",
          "[scheduler][light]") {
  Lightly lightly;
  auto& process = lightly.start(*lightly.nodes[1]);
  CHECK(lightly.wrong() == "nothing");
  process.held.resources = {{"cpu", 1}};
  CHECK(lightly.wrong() != "nothing");  // 1: it holds something
  process.held.resources = {};
  process.role = Role::None;
  CHECK(lightly.wrong() != "nothing");  // 1: nobody uses it
  process.role = Role::Actor;
  process.light = false;
  CHECK(lightly.wrong() != "nothing");  // 1: it is light
  process.light = true;
  ++lightly.nodes[2]->light_processes;
  CHECK(lightly.wrong() != "nothing");  // 2
  --lightly.nodes[2]->light_processes;
  lightly.nodes[1]->cpus = 1;
  CHECK(lightly.wrong() != "nothing");  // 3: it stands where it does not belong
  lightly.nodes[1]->cpus = 2;
  CHECK(lightly.wrong() == "nothing");
  lightly.light.on_node_lost(*lightly.nodes[0]);
  CHECK(lightly.wrong() != "nothing");  // 3: it has no place
}

TEST_CASE("light processes are counted and nodes in order, whichever come and go",
          "[scheduler][light][property]") {
  const auto seed = GENERATE(take(20, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Lightly lightly;
  std::vector<Process*> running;
  for (int i = 0; i < 100; ++i) {
    if (running.empty() || random() % 3 != 0) {
      running.push_back(&lightly.start(*lightly.nodes[random() % 3]));
    } else {
      auto* process = running[random() % running.size()];
      std::erase(running, process);
      lightly.end(*process);
    }
    REQUIRE(lightly.wrong() == "nothing");
    const auto order = lightly.order();
    for (std::size_t k = 1; k < order.size(); ++k)
      REQUIRE_FALSE(order[k]->light_load() < order[k - 1]->light_load());
  }
}
