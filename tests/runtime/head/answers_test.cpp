// Every request of a process is answered once, whatever ends in the turn in which it is granted.
#include "guard.hpp"
#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;
using troupe::test::kGuard;

namespace {

constexpr std::uint64_t kUnplaced = 11, kGangOfOne = 12;

/// A node of one CPU, which says of a process that it is ready and that it has ended in one write,
/// so that the head reads both in one turn of its loop.
struct OneCpu {
  Scene scene;
  Peer node{scene, wire::Role::NODE};
  Peer driver{scene, wire::Role::DRIVER};

  OneCpu() {
    node.starts = false;
    node.join_with_cpus(1);
    driver.register_job("driver");
  }
  void end_as_it_gets_ready() {
    REQUIRE(scene.run_until([this] { return !node.started.empty(); }));
    const auto process = *node.started.begin();
    node.ready(process);
    node.exit(process);
  }
  const Failure& refusal() {
    REQUIRE(scene.run_until([this] { return driver.refused.has_value(); }, kGuard));
    return *driver.refused;
  }
};

}  // namespace

TEST_CASE("a lease whose process ends as it is granted is refused, and the next one is granted",
          "[head][answers]") {
  OneCpu cluster;
  cluster.driver.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
  cluster.end_as_it_gets_ready();
  CHECK(cluster.refusal().kind == Failure::Kind::ProcessDied);
  CHECK(cluster.driver.granted.empty());

  cluster.node.starts = true;
  cluster.driver.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
  CHECK(cluster.scene.run_until([&] { return cluster.driver.granted.size() == 1; }));
}

TEST_CASE("a gang of which a process ends as it is placed is refused", "[head][answers]") {
  OneCpu cluster;
  cluster.driver.post([](wire::HeadRequest::Builder ask) {
    auto gang = ask.initGang();
    gang.setSize(1);
    gang.setGang(kGangOfOne);
    need_a_cpu(gang.initEach());
  });
  cluster.end_as_it_gets_ready();
  CHECK(cluster.refusal().kind == Failure::Kind::ProcessDied);
  CHECK(cluster.driver.placed.empty());
}

TEST_CASE("an actor that is killed before it is placed is answered", "[head][answers]") {
  OneCpu cluster;
  cluster.driver.post([](wire::HeadRequest::Builder ask) {
    auto actor = ask.initActor();
    actor.setActor(kUnplaced);
    actor.setType("its type");
    need_a_cpu(actor.initRequest());
  });
  cluster.driver.post([](wire::HeadRequest::Builder ask) { ask.setActorKill(kUnplaced); });
  const auto why = cluster.refusal();
  CHECK(why.kind == Failure::Kind::ActorDied);
  CHECK_THAT(why.message, Catch::Contains("its type"));
}

TEST_CASE("a process runs if its node sends a heartbeat later, and not whatever else the node says",
          "[head][answers]") {
  OneCpu cluster;
  cluster.node.starts = true;
  cluster.driver.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
  REQUIRE(cluster.scene.run_until([&] { return cluster.driver.granted.size() == 1; }));
  const auto process = *cluster.node.started.begin();
  cluster.driver.post([process](wire::HeadRequest::Builder ask) { ask.setFate(process); });
  const auto beat = [&] {
    cluster.node.say([](wire::Message::Builder message) { message.setHeartbeat(1); });
  };
  beat();
  // The head waits for less than that until a report of the death must have come. What a node says
  // later may have been kept in a broken line before, and so says nothing of the process.
  const auto until = Clock::now() + 2s;
  while (cluster.driver.fates.empty() && Clock::now() < until) {
    cluster.node.say([](wire::Message::Builder message) { message.setOwnerWatch(9999); });
    cluster.scene.run_until([&] { return !cluster.driver.fates.empty(); }, 50ms);
  }
  REQUIRE(cluster.driver.fates.empty());
  beat();
  REQUIRE(cluster.scene.run_until([&] { return !cluster.driver.fates.empty(); }));
  CHECK(cluster.driver.fates[0].kind == Failure::Kind::Disconnected);
  CHECK_THAT(cluster.driver.fates[0].message, Catch::Contains("its node says that it runs"));
}
