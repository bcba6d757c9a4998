#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "guard.hpp"
#include "head/head.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"
#include "wire/codec.hpp"

/// A head, and peers that check nothing of what they send, on one loop.
namespace troupe::head::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Scene {
  explicit Scene(std::string directory = {}) : options(head_options(std::move(directory))) {}

  boost::asio::io_context loop{1};
  HeadOptions options;
  Head head{loop, options};

  static HeadOptions head_options(std::string directory) {
    HeadOptions options;
    options.directory = std::move(directory);
    options.unix_name = "troupe-test-" + transport::random_name();
    options.node_silence = 10min;  // a peer says nothing unasked
    return options;
  }

  template <class Condition>
  bool run_until(Condition condition, std::chrono::milliseconds limit = troupe::test::kGuard) {
    for (const auto end = Clock::now() + limit; !condition() && Clock::now() < end;)
      loop.run_one_for(20ms);
    return condition();
  }
};

/// A peer of the head, whatever its first message is.
struct Peer {
  Scene& scene;
  transport::ConnectionPtr connection;
  std::string shutdown, reply;
  std::optional<Failure> refused;
  std::vector<Failure> fates;          ///< how processes ended, or what else is known of them
  std::uint64_t process = 0;           ///< of a driver, once it is registered
  std::vector<std::uint64_t> granted;  ///< leases, in the order of their grants
  std::vector<std::uint64_t> placed;   ///< actors and gangs
  /// Of a node: processes that it was told to start, and not yet to stop.
  std::set<std::uint64_t> started;
  bool starts = true;  ///< a node says that its processes are ready
  std::uint64_t last_ask = 0;
  std::size_t heartbeats = 0;  ///< echoed by the head
  bool registered = false;
  bool joined = false;

  Peer(Scene& in, wire::Role role) : scene(in) {
    transport::ClientOptions client;
    client.self.role = role;
    client.key = scene.options.token;
    transport::connect(
        scene.loop, {.host = {}, .port = 0, .unix_name = scene.options.unix_name}, client,
        [this](transport::ConnectionPtr open, const transport::Accepted&) {
          connection = std::move(open);
          connection->hand_over(
              {}, [this](wire::Message::Reader message) { hear(message); },
              [](const std::string&) {});
        },
        [](const transport::Denied& denied) { FAIL(denied.why); });
    REQUIRE(scene.run_until([this] { return connection != nullptr; }));
  }
  ~Peer() {
    if (connection) connection->close();
  }
  Peer(const Peer&) = delete;

  void hear(wire::Message::Reader message) {
    if (message.isShutdown()) shutdown = message.getShutdown();
    if (message.isAdminReply()) reply = message.getAdminReply();
    if (message.isRegistered()) process = message.getRegistered().getProcess();
    registered = registered || message.isRegistered();
    joined = joined || message.isNodeJoined();
    if (message.isHeartbeat()) ++heartbeats;
    if (message.isHeadNotice()) hear(message.getHeadNotice());
    if (message.isStartProcess()) start(message.getStartProcess().getProcess());
    if (message.isStopProcess()) exit(message.getStopProcess().getProcess());
  }
  void hear(wire::HeadNotice::Reader tell) {
    if (tell.isRefused()) refused = runtime::read_failure(tell.getRefused());
    if (tell.isFate()) fates.push_back(runtime::read_failure(tell.getFate()));
    if (tell.isLease()) granted.push_back(tell.getLease().getLease());
    if (tell.isActor()) placed.push_back(tell.getActor().getActor());
    if (tell.isGang()) placed.push_back(tell.getGang().getGang());
  }
  void start(std::uint64_t id) {
    started.insert(id);
    if (starts) ready(id);
  }
  void ready(std::uint64_t id) const {
    say([id](wire::Message::Builder message) {
      auto ready = message.initProcessReady();
      ready.setProcess(id);
      runtime::write_address(ready.initAddress(), {});
    });
  }
  void exit(std::uint64_t id) {
    started.erase(id);
    say([id](wire::Message::Builder message) {
      auto exited = message.initProcessExited();
      exited.setProcess(id);
      runtime::write_failure(exited.initFailure(),
                             {.kind = Failure::Kind::ProcessDied, .message = "it ended"});
    });
  }
  void say(const std::function<void(wire::Message::Builder)>& fill) const {
    transport::Outgoing message;
    fill(message.root());
    connection->send(message);
  }

  nlohmann::json status() {
    reply.clear();
    say([](wire::Message::Builder message) { message.setAdminRequest(R"({"do": "status"})"); });
    REQUIRE(scene.run_until([this] { return !reply.empty(); }));
    return nlohmann::json::parse(reply);
  }
  void join(const std::function<void(wire::NodeJoin::Builder)>& fill) {
    say([&](wire::Message::Builder message) {
      auto join = message.initNodeJoin();
      join.setName("node");
      fill(join);
    });
    REQUIRE(scene.run_until([this] { return joined || !shutdown.empty(); }));
  }
  void register_job(const std::string& name, double weight = 1) {
    say([&](wire::Message::Builder message) {
      auto driver = message.initRegister();
      driver.initProgram();
      runtime::write_address(driver.initAddress(), {});
      driver.setName(name);
      driver.setWeight(weight);
    });
    REQUIRE(scene.run_until([this] { return registered; }));
  }
  void join_with_cpus(double cpus) {
    join([cpus](wire::NodeJoin::Builder join) {
      auto amount = join.initResources(1)[0];
      amount.setName("cpu");
      amount.setUnits(cpus);
    });
  }
  /// Asks without waiting for an answer. -> the number of the ask
  std::uint64_t post(const std::function<void(wire::HeadRequest::Builder)>& fill) {
    say([&](wire::Message::Builder message) {
      auto ask = message.initHeadRequest();
      ask.setId(++last_ask);
      fill(ask);
    });
    return last_ask;
  }
  Failure ask(const std::function<void(wire::HeadRequest::Builder)>& fill) {
    refused.reset();
    say([&](wire::Message::Builder message) {
      auto ask = message.initHeadRequest();
      ask.setId(7);
      fill(ask);
    });
    REQUIRE(scene.run_until([this] { return refused.has_value(); }));
    return *refused;
  }
};

inline void need_a_cpu(wire::Request::Builder request) {
  auto amount = request.initResources(1)[0];
  amount.setName("cpu");
  amount.setUnits(1);
}

}  // namespace troupe::head::test
