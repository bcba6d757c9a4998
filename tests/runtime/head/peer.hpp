#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "head/head.hpp"
#include "process/codec.hpp"
#include "transport/handshake.hpp"
#include "transport/proof.hpp"

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
    return options;
  }

  template <class Condition>
  bool run_until(Condition condition, std::chrono::milliseconds limit = 60s) {
    for (const auto end = Clock::now() + limit; !condition() && Clock::now() < end;) loop.run_one_for(20ms);
    return condition();
  }
};

/// A peer of the head, whatever its first message is.
struct Peer {
  Scene& scene;
  transport::ConnectionPtr connection;
  std::string shutdown, reply;
  std::optional<Failure> refused;
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
              {}, [this](wire::Message::Reader message) { hear(message); }, [](const std::string&) {});
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
    if (message.isTell() && message.getTell().isRefused())
      refused = process::read_failure(message.getTell().getRefused());
    registered = registered || message.isRegistered();
    joined = joined || message.isNodeJoined();
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
  void register_job(const std::string& name) {
    say([&](wire::Message::Builder message) {
      auto driver = message.initRegister();
      driver.initProgram();
      process::write_address(driver.initAddress(), {});
      driver.setName(name);
    });
    REQUIRE(scene.run_until([this] { return registered; }));
  }
  Failure ask(const std::function<void(wire::Ask::Builder)>& fill) {
    refused.reset();
    say([&](wire::Message::Builder message) {
      auto ask = message.initAsk();
      ask.setId(7);
      fill(ask);
    });
    REQUIRE(scene.run_until([this] { return refused.has_value(); }));
    return *refused;
  }
};

}  // namespace troupe::head::test
