#include "values/shortlist.hpp"

#include <random>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "values/cpu_loans.hpp"
#include "values/dominant_shares.hpp"
#include "values/few_records.hpp"
#include "values/reservations.hpp"

using namespace std::chrono_literals;
using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Nodes of a table, and requests that wait.
struct Listing {
  FewRecords records;
  NodeTable table;
  LeaseBounds bounds{2};
  LightProcesses light{2};
  Queue queue;
  Shortlist shortlist{table, bounds, light};
  NodeId last{};
  Job& job = records.job();
  Process& driver = records.process(job, records.node());

  Node& node(double cpus, Labels labels = {}) {
    NodeJoined joined;
    joined.node = ++last;
    joined.total = {{"cpu", cpus}};
    joined.labels = std::move(labels);
    auto& node = table.add(joined);
    light.on_node_joined(node);
    return node;
  }
  /// That many light processes there.
  void use(Node& node, int processes) {
    for (int i = 0; i < processes; ++i) light.add(records.process(job, node));
  }
  Request& waiting(ShapeKey key) {
    auto& request = records.request(driver, {});
    request.shape = ShapePtr{std::move(key)};
    queue.add(request, queue.shape_for(*request.shape, request.shape));
    return request;
  }
  Shape& shape(double cpus, Labels labels = {}) {
    return *waiting({Kind::Lease, {{{"cpu", cpus}}, std::move(labels), false}}).line->shape;
  }
  std::vector<NodeId> ids(std::span<const Candidate> candidates) const {
    std::vector<NodeId> ids;
    for (const auto& candidate : candidates) {
      CHECK(shortlist.node_of(candidate).id == candidate.node);
      ids.push_back(candidate.node);
    }
    return ids;
  }
};

}  // namespace

TEST_CASE("a node admits what fits its labels and what is free", "[scheduler][shortlist]") {
  Listing listing;
  auto& small = listing.node(1);
  auto& large = listing.node(4, {{"zone", "a"}});
  auto& list = listing.shortlist;
  CHECK(list.admits(small, listing.shape(1)));
  CHECK_FALSE(list.admits(small, listing.shape(2)));
  CHECK_FALSE(list.admits(small, listing.shape(1, {{"zone", "a"}})));
  CHECK(list.admits(large, listing.shape(1, {{"zone", "a"}})));
  CHECK(listing.ids(list.of_all(listing.shape(2))) == std::vector{large.id});
  CHECK(listing.ids(list.of({&small}, listing.shape(2))).empty());
}

TEST_CASE("a node whose next CPU is promised admits only what needs none",
          "[scheduler][shortlist]") {
  Listing listing;
  auto& node = listing.node(4);
  auto& waits = listing.records.process(listing.job, node);
  waits.held.resources = {{"cpu", 1}};
  CpuLoans loans;
  loans.lend(waits);
  CHECK(listing.shortlist.admits(node, listing.shape(1)));
  loans.unblock(waits, 1s);
  CHECK_FALSE(listing.shortlist.admits(node, listing.shape(1)));
  CHECK(listing.shortlist.admits(node, listing.shape(0)));
}

TEST_CASE("a node at its bound on lease processes admits actors and no leases",
          "[scheduler][shortlist]") {
  Listing listing;
  auto& node = listing.node(1);
  for (int i = 0; i < 2; ++i) listing.bounds.add(node);
  CHECK_FALSE(listing.shortlist.admits(node, listing.shape(1)));
  const auto& actor = listing.waiting({Kind::Actor, {{{"cpu", 1}}, {}, false}});
  CHECK(listing.shortlist.admits(node, *actor.line->shape));
}

TEST_CASE("what needs nothing is shown the nodes with the fewest light processes for their CPUs",
          "[scheduler][shortlist]") {
  Listing listing;
  std::vector<Node*> nodes;
  for (int i = 0; i < 20; ++i) nodes.push_back(&listing.node(2));
  for (int i = 0; i < 18; ++i) listing.use(*nodes[i], i < 10 ? 2 : 1);
  const auto some = listing.ids(listing.shortlist.of_all(listing.shape(0)));
  CHECK(some.size() < 20);
  CHECK(std::vector(some.begin(), some.begin() + 3) ==
        std::vector{nodes[18]->id, nodes[19]->id, nodes[10]->id});

  auto& list = listing.shortlist;
  listing.use(*nodes[0], 2);
  CHECK_FALSE(list.admits(*nodes[0], listing.shape(0)));  // it has four, and may have two per CPU
  CHECK(list.admits(*nodes[0], listing.shape(1)));
}

TEST_CASE("what is kept for a request is free for its shape, and for no other",
          "[scheduler][shortlist]") {
  Listing listing;
  auto& node = listing.node(4);
  auto& kept_for = listing.waiting({Kind::Lease, {{{"cpu", 3}}, {}, false}});
  Reservations reservations{Options{}};
  reservations.hold(kept_for, {&node}, 0s);
  CHECK(listing.shortlist.admits(node, *kept_for.line->shape));
  CHECK(listing.shortlist.admits(node, listing.shape(1)));
  CHECK_FALSE(listing.shortlist.admits(node, listing.shape(2)));
  const auto candidates = listing.shortlist.of_all(listing.shape(1));
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].free->amounts() == Resources{{"cpu", 1}});
}

TEST_CASE("what is kept for a job that has had more is free for others", "[scheduler][shortlist]") {
  Listing listing;
  auto& node = listing.node(4);
  auto& rich = listing.records.job();
  DominantShares shares{10s};
  shares.set_total({{"cpu", 4}});
  shares.use(rich.share, {{"cpu", 2}}, 0s);
  shares.review(rich.share, *shares.begin_review(60s), 60s);
  auto& driver = listing.records.process(rich, listing.records.node());
  auto& kept_for = listing.records.request(driver, {{"cpu", 4}});
  Reservations reservations{Options{}};
  reservations.hold(kept_for, {&node}, 0s);
  CHECK(listing.shortlist.admits(node, listing.shape(2)));
}

TEST_CASE("of many nodes a few are listed, the fullest or the emptiest first",
          "[scheduler][shortlist]") {
  Listing listing;
  for (int cpus = 1; cpus <= 20; ++cpus) listing.node(cpus);
  const Need spread{{{"cpu", 2}}, {}, true};
  const auto& emptiest = listing.waiting({Kind::Lease, spread, 1, Strategy::Spread});
  CHECK(listing.shortlist.of_all(listing.shape(2)).front().node == NodeId{2});
  CHECK(listing.shortlist.of_all(listing.shape(2)).size() < 20);
  CHECK(listing.shortlist.of_all(*emptiest.line->shape).front().node == NodeId{20});

  const auto& gang = listing.waiting({Kind::Gang, {{{"cpu", 2}}, {}, false}, 12});
  CHECK(listing.shortlist.of_all(*gang.line->shape).size() == 12);
  const auto& together =
      listing.waiting({Kind::Gang, {{{"cpu", 2}}, {}, false}, 9, Strategy::StrictPack});
  CHECK(listing.ids(listing.shortlist.of_all(*together.line->shape)) ==
        std::vector{NodeId{18}, NodeId{19}, NodeId{20}});
}

TEST_CASE("one of the nodes that admit a process is always listed, and none that does not",
          "[scheduler][shortlist][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Listing listing;
  std::vector<Node*> nodes;
  for (int i = 0; i < 20; ++i) {
    nodes.push_back(&listing.node(1.0 + random() % 4));
    if (random() % 3 == 0) listing.table.take(*nodes.back(), {{"cpu", 1}});
    for (auto leases = random() % 4; leases > 0; --leases) listing.bounds.add(*nodes.back());
    listing.use(*nodes.back(), static_cast<int>(random() % 4));
  }
  Reservations reservations{Options{}};
  for (int i = 0; i < 3; ++i) {
    auto& kept_for = listing.waiting({Kind::Lease, {{{"cpu", 3}}, {}, random() % 2 == 0}});
    reservations.hold(kept_for, {nodes[random() % 20], nodes[random() % 20]}, 0s);
  }
  for (const double cpus : {0., 0.5, 1., 2., 3., 4., 5.}) {
    const auto& shape = listing.shape(cpus);
    std::size_t admitting = 0;
    for (auto* node : nodes) admitting += listing.shortlist.admits(*node, shape) ? 1 : 0;
    const auto some = listing.ids(listing.shortlist.of_all(shape));
    REQUIRE(some.empty() == (admitting == 0));
    REQUIRE(listing.ids(listing.shortlist.of(nodes, shape)).size() == admitting);
    for (const auto id : some) REQUIRE(listing.shortlist.admits(*listing.table.find(id), shape));
  }
}
