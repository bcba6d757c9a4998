// Which silence of a node, or of a driver, the head takes for its end.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "head/head.hpp"
#include "node/join.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using troupe::test::kGuard;

namespace {

constexpr std::chrono::milliseconds kSilence{1000};

/// A head and one that has connected to it, on one loop: as in a private cluster.
struct SilenceScene {
  boost::asio::io_context loop{1};
  const troupe::head::HeadOptions options;
  troupe::head::Head head{loop, options};
  boost::asio::steady_timer beat_timer{loop};
  troupe::transport::ConnectionPtr connection;
  bool beats = true;
  std::optional<std::string> ended;  // the connection, or before there was one

  explicit SilenceScene(troupe::head::HeadOptions with) : options(std::move(with)) {}
  ~SilenceScene() {
    if (connection) connection->close();
  }

  void beat() {
    if (!beats || ended) return;
    troupe::transport::Outgoing message;
    message.root().setHeartbeat(1);
    connection->send(message);
    beat_timer.expires_after(kSilence / 5);
    beat_timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) beat();
    });
  }

  template <class Condition>
  void run_until(Condition condition, std::chrono::milliseconds limit = kGuard) {
    for (const auto end = Clock::now() + limit; !condition() && Clock::now() < end;)
      loop.run_one_for(20ms);
  }
};

/// With what the head takes for a node.
struct HeadAndNode : SilenceScene {
  bool joined = false;

  HeadAndNode() : SilenceScene(head_options()) {
    troupe::transport::ClientOptions client;
    client.self.role = troupe::wire::Role::NODE;
    client.key = options.token;
    client.timeout = kGuard;
    troupe::transport::connect(
        loop, {.host = {}, .port = 0, .unix_name = options.unix_name}, client,
        [this](troupe::transport::ConnectionPtr made, const troupe::transport::Accepted&) {
          join(std::move(made));
        },
        [this](const troupe::transport::Denied& denied) { ended = denied.why; });
    run_until([this] { return joined; });
    beat();
  }

  static troupe::head::HeadOptions head_options() {
    troupe::head::HeadOptions options;
    options.unix_name = "troupe-test-" + troupe::transport::random_name();
    options.node_silence = kSilence;
    return options;
  }

  void join(troupe::transport::ConnectionPtr made) {
    connection = std::move(made);
    connection->hand_over(
        {},
        [this](troupe::wire::Message::Reader message) {
          joined = joined || message.isNodeJoined();
        },
        [this](const std::string& why) { ended = why; });
    troupe::transport::Outgoing message;
    troupe::node::NodeOptions offer;
    offer.cpus = 1;
    troupe::node::write_join(message.root().initNodeJoin(), offer, "node", "127.0.0.1", {});
    connection->send(message);
  }
};

}  // namespace

TEST_CASE("a head that stood still does not take its nodes for lost", "[runtime][head][failure]") {
  HeadAndNode scene;
  REQUIRE(scene.joined);
  std::this_thread::sleep_for(3 * kSilence / 2);  // as one that is stopped, or starved
  scene.run_until([&] { return scene.ended.has_value(); }, kSilence / 2);
  CHECK_FALSE(scene.ended);
}

TEST_CASE("a node that says nothing while its head runs is lost", "[runtime][head][failure]") {
  HeadAndNode scene;
  REQUIRE(scene.joined);
  scene.beats = false;
  scene.run_until([&] { return scene.ended.has_value(); });
  CHECK(scene.ended);
}

namespace {

/// A head, and what it takes for a driver, on one loop.
struct HeadAndDriver : SilenceScene {
  int echoes = 0;
  bool registered = false;

  explicit HeadAndDriver(bool tcp) : SilenceScene(head_options(tcp)) {
    troupe::transport::Endpoint to{.host = {}, .port = 0, .unix_name = options.unix_name};
    if (tcp) to = {.host = "127.0.0.1", .port = head.port(), .unix_name = {}};
    troupe::transport::ClientOptions client;
    client.self.role = troupe::wire::Role::DRIVER;
    client.key = options.token;
    client.timeout = kGuard;
    troupe::transport::connect(
        loop, to, client,
        [this](troupe::transport::ConnectionPtr made, const troupe::transport::Accepted&) {
          enter(std::move(made));
        },
        [this](const troupe::transport::Denied& denied) { ended = denied.why; });
    run_until([this] { return registered || ended; });
    beat();
  }

  static troupe::head::HeadOptions head_options(bool tcp) {
    troupe::head::HeadOptions options;
    if (!tcp) options.unix_name = "troupe-test-" + troupe::transport::random_name();
    options.driver_silence = kSilence;
    return options;
  }

  void enter(troupe::transport::ConnectionPtr made) {
    connection = std::move(made);
    connection->hand_over(
        {},
        [this](troupe::wire::Message::Reader message) {
          registered = registered || message.isRegistered();
          echoes += message.isHeartbeat() ? 1 : 0;
        },
        [this](const std::string& why) { ended = why; });
    troupe::transport::Outgoing message;
    message.root().initRegister().setName("driver");
    connection->send(message);
  }
};

}  // namespace

TEST_CASE(
    "a driver that beats stays, and hears the echo; one that stops keeps its job for as long as is "
    "allowed",
    "[runtime][head][failure]") {
  HeadAndDriver scene(true);
  REQUIRE(scene.registered);
  const auto long_enough = Clock::now() + 2 * kSilence;
  scene.run_until([&] { return scene.ended || (scene.echoes > 3 && Clock::now() >= long_enough); });
  CHECK_FALSE(scene.ended);
  CHECK(scene.echoes > 3);
  const auto silent_since = Clock::now();
  scene.beats = false;
  scene.run_until([&] { return scene.ended.has_value(); });
  CHECK(scene.ended);
  CHECK(Clock::now() - silent_since >= kSilence / 2);
}

TEST_CASE("a driver whose head stood still as long as is allowed keeps its job",
          "[runtime][head][failure]") {
  HeadAndDriver scene(true);
  REQUIRE(scene.registered);
  std::this_thread::sleep_for(3 * kSilence / 2);
  scene.run_until([&] { return scene.ended.has_value(); }, kSilence / 2);
  CHECK_FALSE(scene.ended);
}

TEST_CASE("a driver on the machine of its head, through a unix socket, may say nothing for ever",
          "[runtime][head][failure]") {
  HeadAndDriver scene(false);
  scene.beats = false;
  REQUIRE(scene.registered);
  scene.run_until([&] { return scene.ended.has_value(); }, 2 * kSilence);
  CHECK_FALSE(scene.ended);
}
