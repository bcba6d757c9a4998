// What a head remembers of what has ended.
#include <algorithm>

#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;

namespace {

void write_actor(wire::HeadRequest::Builder ask, std::uint64_t id) {
  auto actor = ask.initActor();
  actor.setActor(id);
  actor.setType("a type");
  actor.setName("actor " + std::to_string(id));
  need_a_cpu(actor.initRequest());
}

void write_gang(wire::HeadRequest::Builder ask, std::uint64_t id) {
  auto gang = ask.initGang();
  gang.setSize(2);
  gang.setGang(id);
  need_a_cpu(gang.initEach());
}

/// A long-lived driver and a node, and what comes and goes beside them.
struct Traffic {
  Scene scene;
  Peer node{scene, wire::Role::NODE};
  Peer driver{scene, wire::Role::DRIVER};
  std::uint64_t last_id = 0;

  Traffic() {
    node.join_with_cpus(2);
    driver.register_job("job");
  }
  /// The tables of the head once all has ended that was to end.
  nlohmann::json tables() {
    nlohmann::json tables;
    REQUIRE(scene.run_until([&] {
      const auto status = driver.status();  // after what the driver has said before
      tables = status["tables"];
      return has_settled(status);
    }));
    // The driver, and what the node keeps for the next request.
    CHECK(tables["routes to processes"] <= 3);
    tables.erase("routes to processes");
    for (const auto* kept : {"ends of processes", "ends of actors"}) tables.erase(kept);
    return tables;
  }
  static bool has_settled(const nlohmann::json& status) {
    const bool none_stops = std::ranges::none_of(
        status["processes"], [](const auto& process) { return process["state"] == "stopping"; });
    return none_stops && status["actors"].empty() && status["gangs"].empty() &&
           status["pending"].empty() &&
           status["processes"].size() == status["tables"]["routes to processes"] &&
           status["jobs"].size() == 1;
  }
  void actor_comes_and_goes() {
    const auto id = ++last_id;
    driver.post([id](wire::HeadRequest::Builder ask) { write_actor(ask, id); });
    REQUIRE(scene.run_until([this] { return !driver.placed.empty(); }));
    driver.placed.clear();
    driver.post([id](wire::HeadRequest::Builder ask) { ask.setActorKill(id); });
  }
  void gang_breaks_and_goes() {
    const auto id = ++last_id;
    driver.post([id](wire::HeadRequest::Builder ask) { write_gang(ask, id); });
    REQUIRE(scene.run_until([this] { return !driver.placed.empty(); }));
    driver.placed.clear();
    if (id % 2 == 0) node.exit(*node.started.begin());
    driver.post([id](wire::HeadRequest::Builder ask) { ask.setGangRelease(id); });
  }
  /// Asked for while the node is full, and given up before they are placed.
  void pending_ones_are_given_up() {
    const auto actor = ++last_id, gang = ++last_id;
    driver.post([actor](wire::HeadRequest::Builder ask) { write_actor(ask, actor); });
    driver.post([gang](wire::HeadRequest::Builder ask) { write_gang(ask, gang); });
    driver.post([actor](wire::HeadRequest::Builder ask) { ask.setActorKill(actor); });
    driver.post([gang](wire::HeadRequest::Builder ask) { ask.setGangRelease(gang); });
    // Of no rank: refused.
    driver.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initGang().initEach()); });
  }
  void job_comes_and_goes() {
    Peer other(scene, wire::Role::DRIVER);
    other.register_job("short");
    other.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
    other.post([](wire::HeadRequest::Builder ask) { ask.initActorFind().setName("nobody"); });
    for (int i = 0; i < 4; ++i)
      other.post([](wire::HeadRequest::Builder ask) { need_a_cpu(ask.initLease()); });
    other.post([](wire::HeadRequest::Builder ask) { ask.setNodeEnd(1); });
    REQUIRE(scene.run_until([&] { return !other.granted.empty(); }));
  }
  /// Its processes are lost with it, some of them while they are told to stop.
  void node_comes_and_goes() {
    Peer other(scene, wire::Role::NODE);
    other.join_with_cpus(8);
    const auto id = ++last_id;
    driver.post([id](wire::HeadRequest::Builder ask) {
      write_gang(ask, id);
      ask.getGang().setSize(8);
    });
    REQUIRE(scene.run_until([this] { return !driver.placed.empty(); }));
    driver.placed.clear();
    driver.post([id](wire::HeadRequest::Builder ask) { ask.setGangRelease(id); });
    other.say([](wire::Message::Builder message) { message.setNodeWatch(1); });
  }
};

}  // namespace

TEST_CASE("the head keeps nothing of actors, gangs, jobs and nodes that have ended",
          "[head][growth]") {
  Traffic cluster;
  const auto before = cluster.tables();
  for (int i = 0; i < 1'000; ++i) cluster.actor_comes_and_goes();
  CHECK(cluster.tables() == before);
  for (int i = 0; i < 500; ++i) cluster.gang_breaks_and_goes();
  CHECK(cluster.tables() == before);
  for (int i = 0; i < 500; ++i) cluster.pending_ones_are_given_up();
  CHECK(cluster.tables() == before);
  for (int i = 0; i < 200; ++i) cluster.job_comes_and_goes();
  CHECK(cluster.tables() == before);
  for (int i = 0; i < 50; ++i) cluster.node_comes_and_goes();
  CHECK(cluster.tables() == before);
}
