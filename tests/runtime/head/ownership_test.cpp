// What one job or node says of what is another's.
#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;

namespace {

constexpr std::uint64_t kActor = 11, kGang = 12;

/// One node of four CPUs. The first job has an actor, a gang of one and a lease; the second has
/// nothing.
struct TwoJobs {
  Scene scene;
  Peer administrator{scene, wire::Role::ADMIN};
  Peer node{scene, wire::Role::NODE};
  Peer owner{scene, wire::Role::DRIVER};
  Peer stranger{scene, wire::Role::DRIVER};

  TwoJobs() {
    node.join_with_cpus(4);
    owner.register_job("owner");
    stranger.register_job("stranger");
    owner.post([](wire::HeadRequest::Builder ask) { write_actor(ask, "its type"); });
    owner.post([](wire::HeadRequest::Builder ask) {
      auto gang = ask.initGang();
      gang.setSize(1);
      gang.setGang(kGang);
      need_a_cpu(gang.initEach());
    });
    owner.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
    REQUIRE(
        scene.run_until([this] { return owner.placed.size() == 2 && owner.granted.size() == 1; }));
  }
  static void write_actor(wire::HeadRequest::Builder ask, const char* type) {
    auto actor = ask.initActor();
    actor.setActor(kActor);
    actor.setType(type);
    need_a_cpu(actor.initRequest());
  }
  /// What the head shows of what the jobs have. Asked on the administrator's connection.
  std::string held() {
    const auto status = administrator.status();
    nlohmann::json held{{"actors", status["actors"]},
                        {"gangs", status["gangs"]},
                        {"processes", status["processes"]},
                        {"jobs", status["jobs"]}};
    return held.dump(1);
  }
  /// What was said before on the peer's connection is done once this is answered: a head reads in
  /// order.
  void round_trip(Peer& peer) { peer.status(); }
};

}  // namespace

TEST_CASE("a job cannot end another's actor or gang, nor give its lease back",
          "[head][ownership]") {
  TwoJobs cluster;
  const auto before = cluster.held();
  const auto lease = cluster.owner.granted.at(0);
  cluster.stranger.post([](wire::HeadRequest::Builder ask) { ask.setActorKill(kActor); });
  cluster.stranger.post([](wire::HeadRequest::Builder ask) { ask.setGangRelease(kGang); });
  cluster.stranger.post([lease](wire::HeadRequest::Builder ask) { ask.setLeaseReturn(lease); });
  for (std::uint64_t id = 1; id <= 3; ++id) {
    cluster.stranger.post([id](wire::HeadRequest::Builder ask) { ask.setWithdraw(id); });
  }
  cluster.round_trip(cluster.stranger);
  CHECK(cluster.held() == before);

  cluster.owner.post([](wire::HeadRequest::Builder ask) { ask.setActorKill(kActor); });
  cluster.owner.post([](wire::HeadRequest::Builder ask) { ask.setGangRelease(kGang); });
  cluster.owner.post([lease](wire::HeadRequest::Builder ask) { ask.setLeaseReturn(lease); });
  cluster.round_trip(cluster.owner);
  const auto status = cluster.administrator.status();
  CHECK(status["actors"].empty());
  CHECK(status["gangs"].empty());
  CHECK(status["jobs"][0]["leases"] == 0);
}

TEST_CASE(
    "a job that asks for an actor under another's id is refused, and the other's stays what it was",
    "[head][ownership][refusal]") {
  TwoJobs cluster;
  const auto refused = cluster.stranger.ask(
      [](wire::HeadRequest::Builder ask) { TwoJobs::write_actor(ask, "another type"); });
  CHECK_THAT(refused.message, Catch::Contains("actor 11 is there already"));
  const auto actors = cluster.administrator.status()["actors"];
  REQUIRE(actors.size() == 1);
  CHECK(actors[0]["type"] == "its type");
  CHECK(actors[0]["job"] == 1);
}

TEST_CASE("what a node says of another's processes counts for nothing", "[head][ownership]") {
  TwoJobs cluster;
  Peer liar(cluster.scene, wire::Role::NODE);
  liar.join_with_cpus(1);
  cluster.node.starts = false;
  cluster.owner.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
  REQUIRE(cluster.scene.run_until(
      [&] { return cluster.node.started.size() == 4 || liar.started.size() == 1; }));
  const auto before = cluster.held();
  for (const auto process : cluster.node.started) {
    liar.ready(process);
    liar.exit(process);
  }
  liar.say([](wire::Message::Builder message) { message.setHeartbeat(1); });
  REQUIRE(cluster.scene.run_until([&] { return liar.heartbeats > 0; }));
  CHECK(cluster.held() == before);
  CHECK(cluster.owner.granted.size() == 1);
}
