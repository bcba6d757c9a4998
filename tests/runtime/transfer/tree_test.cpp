#include <thread>

#include "../../support/id_literals.hpp"
#include "harness.hpp"

using namespace troupe;
using namespace troupe::transfer;
using namespace troupe::transfer::test;

namespace {

constexpr std::uint64_t kBytes = 24 * kMiB;

NodeOptions with_receivers(std::size_t receivers) {
  NodeOptions options;
  options.exchange.receivers = receivers;
  return options;
}

}  // namespace

TEST_CASE("five nodes get an object by a tree, and its own node sends it twice",
          "[transfer][tree]") {
  Node origin(1_node);
  origin.attach(10_process);
  const auto object = origin.put(10_process, kBytes);
  // Slow enough that all five ask before anybody has it.
  const Proxy slow(origin.address(), slowly(24 * kMiB));
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::future<Answer>> answers;
  for (std::uint32_t i = 0; i < 5; ++i) {
    nodes.push_back(std::make_unique<Node>(store::NodeId(2 + i)));
    nodes.back()->attach(ProcessId(20 + i));
    answers.push_back(nodes.back()->ask(ProcessId(20 + i), object, kBytes, slow.address()));
  }
  for (std::uint32_t i = 0; i < 5; ++i)
    CHECK(nodes[i]->has(ProcessId(20 + i), answers[i].get(), object));
  CHECK(slow.connections() == 5);
  CHECK(slow.came_back() < 2 * kBytes + kMiB);
  for (auto& node : nodes) CHECK(eventually([&] { return node->sending() == 0; }));

  const store::Statistics nothing;
  for (std::uint32_t i = 0; i < 5; ++i) nodes[i]->unpin(ProcessId(20 + i), object);
  origin.free(10_process, object);
  for (auto& node : nodes) {
    CHECK(eventually([&] { return node->statistics().objects == 0; }));
    CHECK(node->statistics().pinned_bytes == 0);
  }
}

TEST_CASE("a node passes an object on while the rest of it is on its way", "[transfer][tree]") {
  Node origin(1_node, with_receivers(1)), middle(2_node), last(3_node);
  origin.attach(10_process);
  middle.attach(20_process);
  last.attach(30_process);
  const auto object = origin.put(10_process, kBytes);
  std::atomic<bool> go_on = false;
  const Proxy gate(origin.address(), [&](int connection, std::uint64_t offset, std::span<char>) {
    return connection != 1 || offset < kBytes / 2 || eventually([&] { return go_on.load(); });
  });
  auto first = middle.ask(20_process, object, kBytes, gate.address());
  REQUIRE(eventually([&] { return gate.came_back() > kBytes / 4; }));
  auto second = last.ask(30_process, object, kBytes, gate.address());
  REQUIRE(eventually([&] { return middle.sending() == 1; }));
  go_on = true;
  CHECK(last.has(30_process, second.get(), object));
  CHECK(middle.has(20_process, first.get(), object));
  CHECK(gate.came_back() < kBytes + kMiB);
}

TEST_CASE("where the node in between ends, the rest comes from where it was written",
          "[transfer][tree]") {
  Node origin(1_node, with_receivers(1)), last(3_node);
  auto middle = std::make_unique<Node>(2_node);
  origin.attach(10_process);
  middle->attach(20_process);
  last.attach(30_process);
  const auto object = origin.put(10_process, kBytes);
  const Proxy slow(origin.address(), slowly(24 * kMiB));
  auto first = middle->ask(20_process, object, kBytes, slow.address());
  REQUIRE(eventually([&] { return slow.came_back() > kMiB; }));
  auto second = last.ask(30_process, object, kBytes, slow.address());
  REQUIRE(eventually([&] { return middle->sending() == 1; }));
  REQUIRE(eventually([&] { return slow.came_back() > kBytes / 2; }));
  middle->kill();
  CHECK(last.has(30_process, second.get(), object));
  CHECK(slow.connections() == 3);
  CHECK(slow.came_back() < 2 * kBytes);  // and what had arrived was not sent again
  CHECK(eventually([&] { return origin.sending() == 0; }));
  CHECK(eventually([&] { return origin.statistics().pinned_bytes == 0; }));
}

TEST_CASE("a node that has given its copy up sends nobody away for good", "[transfer][tree]") {
  Node origin(1_node, with_receivers(1)), middle(2_node, {.cap_bytes = 8 * kMiB}), holding(3_node),
      last(4_node);
  origin.attach(10_process);
  middle.attach(20_process);
  holding.attach(30_process);
  last.attach(40_process);
  const auto object = origin.put(10_process, 6 * kMiB), other = origin.put(10_process, 6 * kMiB);
  REQUIRE(
      middle.has(20_process, middle.get(20_process, object, 6 * kMiB, origin.address()), object));
  middle.unpin(20_process, object);
  REQUIRE(middle.has(20_process, middle.get(20_process, other, 6 * kMiB, origin.address()), other));
  CHECK(eventually([&] { return origin.sending() == 0; }));
  const Proxy slow(origin.address(), slowly(6 * kMiB));
  auto busy = holding.ask(30_process, object, 6 * kMiB, slow.address());
  REQUIRE(eventually([&] { return slow.came_back() > 0; }));
  CHECK(last.has(40_process, last.get(40_process, object, 6 * kMiB, origin.address()), object));
  CHECK(holding.has(30_process, busy.get(), object));
}
