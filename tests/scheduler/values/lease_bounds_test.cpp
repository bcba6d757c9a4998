#include "values/lease_bounds.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Two nodes of 2 CPUs, with two processes with a lease per CPU at most.
struct Bounded {
  FewRecords records;
  LeaseBounds bounds{2};
  Job& job = records.job();
  std::array<Node*, 2> nodes{&records.node(), &records.node()};

  Bounded() {
    for (auto* node : nodes) {
      node->cpus = 2;
      bounds.on_node_joined(*node);
    }
  }
  Process& start(Node& node) {
    auto& process = records.process(job, node);
    process.role = Role::Lease;
    bounds.add(node);
    return process;
  }
  void end(Process& process) {
    process.role = Role::None;
    bounds.remove(*process.node);
  }
  std::string wrong() const { return bounds.broken_invariant(records.nodes()).value_or("nothing"); }
};

}  // namespace

TEST_CASE("a node is at its bound while it has as many processes with a lease as it may, or more",
          "[scheduler][bounds]") {
  Bounded bounded;
  auto& node = *bounded.nodes[0];
  for (int i = 0; i < 3; ++i) bounded.start(node);
  CHECK_FALSE(bounded.bounds.is_at_bound(node));
  auto& fourth = bounded.start(node);
  auto& fifth = bounded.start(node);
  CHECK(bounded.bounds.is_at_bound(node));
  CHECK_FALSE(bounded.bounds.is_at_bound(*bounded.nodes[1]));

  bounded.end(fifth);
  CHECK(bounded.bounds.any_at_bound());
  CHECK(bounded.wrong() == "nothing");
  bounded.end(fourth);
  CHECK_FALSE(bounded.bounds.any_at_bound());
  CHECK(bounded.wrong() == "nothing");
}

TEST_CASE("a node that may have none is at its bound from when it joins until it is lost",
          "[scheduler][bounds]") {
  FewRecords records;
  LeaseBounds none{0};
  const auto& node = records.node();
  none.on_node_joined(node);
  CHECK(none.any_at_bound());
  CHECK_FALSE(none.broken_invariant(records.nodes()));
  none.on_node_lost(node);
  CHECK_FALSE(none.any_at_bound());
}

TEST_CASE("processes with a lease that are miscounted are found", "[scheduler][bounds]") {
  Bounded bounded;
  auto& process = bounded.start(*bounded.nodes[0]);
  CHECK(bounded.wrong() == "nothing");
  process.role = Role::Actor;
  CHECK(bounded.wrong() != "nothing");  // 1
  process.role = Role::Lease;
  bounded.nodes[0]->cpus = 0;
  CHECK(bounded.wrong() != "nothing");  // 2: it is at its bound all at once
}

TEST_CASE("nodes at their bound are counted, whichever processes come and go",
          "[scheduler][bounds][property]") {
  const auto seed = GENERATE(take(20, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Bounded bounded;
  std::vector<Process*> leased;
  for (int i = 0; i < 100; ++i) {
    if (leased.empty() || random() % 2 == 0) {
      leased.push_back(&bounded.start(*bounded.nodes[random() % 2]));
    } else {
      auto* process = leased[random() % leased.size()];
      std::erase(leased, process);
      bounded.end(*process);
    }
    REQUIRE(bounded.wrong() == "nothing");
  }
}
