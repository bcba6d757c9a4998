// What a head makes of a node whose connection breaks: the node is lost where its process has ended
// or stays away, and goes on where it connects again.
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "head/head.hpp"
#include "os/machine.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/stream/resumable_line.hpp"

using namespace std::chrono_literals;
using namespace troupe;

namespace {

/// A head on TCP, on one loop with the nodes that join it.
struct ReturnScene {
  boost::asio::io_context loop{1};
  std::vector<std::string> log;
  head::HeadOptions options;
  std::unique_ptr<head::Head> head;

  explicit ReturnScene(std::chrono::milliseconds node_silence = 10min) {
    options.node_silence = node_silence;  // a node of this test says nothing unasked
    options.log = [this](const std::string& line) { log.push_back(line); };
    head = std::make_unique<head::Head>(loop, options);
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + test::kGuard;
    while (!condition() && std::chrono::steady_clock::now() < end) loop.run_one_for(20ms);
    return condition();
  }
  bool has_said(const std::string& text) const {
    return std::ranges::any_of(
        log, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  bool says(const std::string& text) {
    return run_until([&] { return has_said(text); });
  }
};

/// What the head takes for a node.
struct ReturningNode {
  ReturnScene& scene;
  std::unique_ptr<transport::Listener> store;
  std::vector<transport::ConnectionPtr> callers;  // of the store
  transport::LinePtr line;
  transport::ConnectionPtr connection;  // that says nodeResume
  std::uint32_t number = 0;
  std::uint64_t incarnation = 0;
  transport::Bytes32 secret{};
  std::multiset<std::uint32_t> ended;  // nodes, as the head says
  std::string refused;
  bool resumed = false;
  std::size_t echoes = 0;  // of its heartbeats

  explicit ReturningNode(ReturnScene& in) : scene(in) {
    store = transport::Listener::tcp(scene.loop, "127.0.0.1", 0, [this](transport::Socket socket) {
      transport::ServerOptions server;
      server.cluster = scene.head->cluster();
      server.refuse = [](const transport::Caller& caller) -> std::string {
        return caller.role == wire::Role::HEAD ? "" : "a head was expected";
      };
      server.key = [this](const transport::Caller&) { return scene.options.token; };
      transport::accept(
          std::move(socket), server,
          [this](const transport::ConnectionPtr& caller, const transport::Accepted&) {
            callers.push_back(caller);
          },
          [](const transport::Denied&) {});
    });
    connect([this](const transport::ConnectionPtr& made) { join(made); });
    REQUIRE(scene.run_until([this] { return number != 0; }));
  }
  ~ReturningNode() { die(); }
  ReturningNode(const ReturningNode&) = delete;

  void connect(std::function<void(const transport::ConnectionPtr&)> then) const {
    transport::ClientOptions client;
    client.self.role = wire::Role::NODE;
    client.key = scene.options.token;
    client.timeout = test::kGuard;
    transport::connect(
        scene.loop, {.host = "127.0.0.1", .port = scene.head->port(), .unix_name = {}}, client,
        [then = std::move(then)](const transport::ConnectionPtr& made, const transport::Accepted&) {
          then(made);
        },
        [](const transport::Denied& denied) { FAIL(denied.why); });
  }
  void join(const transport::ConnectionPtr& made) {
    line = transport::ResumableLine::make(made);
    line->start([this](wire::Message::Reader message) { hear(message); },
                [](const std::string&) {});
    transport::Outgoing message;
    auto join = message.root().initNodeJoin();
    join.setName("node");
    join.setResumes(true);
    auto at = join.initStore();
    at.setHost("127.0.0.1");
    at.setPort(store->port());
    at.setMachine(os::machine_id());
    line->send(message);
  }
  void hear(wire::Message::Reader message) {
    if (message.isHeartbeat()) ++echoes;
    if (message.isNodeEnded()) ended.insert(message.getNodeEnded());
    if (!message.isNodeJoined()) return;
    const auto joined = message.getNodeJoined();
    number = joined.getNode();
    incarnation = joined.getIncarnation();
    const auto given = transport::bytes_of(joined.getSecret());
    REQUIRE(given.size() == secret.size());
    std::ranges::copy(given, secret.begin());
    line->keep();
  }
  /// That node has ended, or the head says so once it has.
  void watch(std::uint32_t other) const {
    transport::Outgoing message;
    message.root().setNodeWatch(other);
    line->send(message);
  }
  /// The head answers, and so has all that was said before.
  void reach_head() {
    const auto before = ended.count(9999);
    watch(9999);
    REQUIRE(scene.run_until([&] { return ended.count(9999) > before; }));
  }
  /// Sends a heartbeat, and waits for its echo.
  void beat() {
    const auto before = echoes;
    transport::Outgoing message;
    message.root().setHeartbeat(1);
    line->send(message);
    REQUIRE(scene.run_until([&] { return echoes > before; }));
  }
  void cut() const { line->connection()->close(); }
  void die() {
    store.reset();
    for (const auto& caller : callers) caller->close();
    if (connection) connection->close();
    line->close();
  }
  /// Until the head takes it back or refuses it.
  void resume() {
    resumed = false;
    refused.clear();
    connect([this](const transport::ConnectionPtr& made) {
      connection = made;
      connection->hand_over(
          {},
          [this](wire::Message::Reader message) {
            if (message.isShutdown()) refused = message.getShutdown();
            if (!message.isNodeResumed()) return;
            resumed = true;
            line->resume(std::exchange(connection, nullptr), message.getNodeResumed());
          },
          [](const std::string&) {});
      transport::Outgoing message;
      auto resume = message.root().initNodeResume();
      resume.setNode(number);
      resume.setIncarnation(incarnation);
      resume.setSecret({secret.data(), secret.size()});
      resume.setReceived(line->received());
      connection->send(message);
    });
    REQUIRE(scene.run_until([this] { return resumed || !refused.empty(); }));
  }
};

}  // namespace

TEST_CASE("a node whose connection breaks connects again, and has what was said meanwhile",
          "[runtime][head][returns]") {
  ReturnScene scene;
  ReturningNode node(scene);
  ReturningNode other(scene);
  node.watch(other.number);
  node.reach_head();
  node.cut();
  REQUIRE(scene.says("node 1 (node): its connection has broken"));
  other.die();
  REQUIRE(scene.says("node 2 (node) is gone"));
  CHECK(node.ended.count(2) == 0);
  node.watch(8888);  // waits, too
  node.resume();
  REQUIRE(node.resumed);
  REQUIRE(scene.run_until([&] { return node.ended.contains(2) && node.ended.contains(8888); }));
  node.reach_head();
  CHECK(node.ended.count(2) == 1);
  CHECK(node.ended.count(8888) == 1);
  CHECK_FALSE(scene.has_said("node 1 (node) is gone"));
}

TEST_CASE("a node whose process has ended is gone at once, not after a silence",
          "[runtime][head][returns]") {
  ReturnScene scene;
  ReturningNode node(scene);
  SECTION("with its connection") { node.die(); }
  SECTION("after its connection") {
    node.cut();
    REQUIRE(scene.says("its connection has broken"));
    CHECK_FALSE(scene.has_said("is gone"));
    REQUIRE(scene.run_until([&] { return !node.callers.empty(); }));
    node.die();
  }
  SECTION("in order, where its process goes on to listen") {
    transport::Outgoing message;
    message.root().setNodeLeaves();
    node.line->send(message);
    node.line->finish();
  }
  REQUIRE(scene.says("node 1 (node) is gone"));
}

TEST_CASE("a node that connects again where its head knows of no break replaces its connection",
          "[runtime][head][returns]") {
  ReturnScene scene;
  ReturningNode node(scene);
  node.reach_head();
  const auto before = node.line->connection();
  node.resume();
  REQUIRE(node.resumed);
  before->close();
  node.reach_head();
  node.cut();  // the second break is one like the first
  REQUIRE(scene.says("its connection has broken"));
  node.resume();
  REQUIRE(node.resumed);
  node.reach_head();
  CHECK_FALSE(scene.has_said("is gone"));
}

TEST_CASE("a node that stays away for as long as it may be silent is lost, and refused then",
          "[runtime][head][returns]") {
  ReturnScene scene(1s);
  ReturningNode node(scene);
  node.cut();
  REQUIRE(
      scene.says("node 1 (node) is gone: no sign of life for 1000 ms, and its connection has "
                 "broken"));
  node.resume();
  CHECK(node.refused == "it has taken node 1 for lost meanwhile, with all of its processes");
}

TEST_CASE("who is not the node that joined does not take its place", "[runtime][head][returns]") {
  ReturnScene scene;
  ReturningNode node(scene);
  const auto [number, incarnation, secret] = std::tuple(node.number, node.incarnation, node.secret);
  SECTION("another secret") {
    node.secret[7] ^= 1;
    node.resume();
    CHECK(node.refused == "this is not who joined as node 1");
  }
  SECTION("a node of the head before") {
    node.incarnation += std::uint64_t{1} << 32;
    node.resume();
    CHECK(node.refused == "it was started after node 1 had joined the head before it");
  }
  SECTION("a node that never joined") {
    node.number = 17;
    node.resume();
    CHECK(node.refused == "it has taken node 17 for lost meanwhile, with all of its processes");
  }
  node.number = number, node.incarnation = incarnation, node.secret = secret;
  node.reach_head();  // through the connection that it has had all the time
}

TEST_CASE("a node whose connections break again and again lives for as long as it sends heartbeats",
          "[runtime][head][returns]") {
  constexpr auto kSilence = 3s;
  ReturnScene scene(kSilence);
  ReturningNode node(scene);
  const auto come_back = [&] {
    node.callers.clear();
    node.cut();
    node.resume();
  };
  const auto long_enough = std::chrono::steady_clock::now() + 2 * kSilence;
  while (node.refused.empty() && std::chrono::steady_clock::now() < long_enough) {
    come_back();
    if (node.resumed) node.beat();
  }
  REQUIRE(node.refused.empty());
  const auto guard = std::chrono::steady_clock::now() + troupe::test::kGuard;
  while (node.refused.empty() && std::chrono::steady_clock::now() < guard) come_back();
  CHECK(scene.has_said("node 1 (node) is gone: no sign of life for 3000 ms"));
}

TEST_CASE("a head that is stopped does not wait for a node whose connection has broken",
          "[runtime][head][returns][stop]") {
  ReturnScene scene;
  ReturningNode node(scene);
  bool stopped = false;
  const auto stop = [&] { scene.head->stop("the test is over", [&] { stopped = true; }); };
  SECTION("before that") {
    node.cut();
    REQUIRE(scene.says("node 1 (node): its connection has broken"));
    stop();
  }
  SECTION("after that") {
    stop();
    node.cut();
  }
  REQUIRE(scene.run_until([&] { return stopped; }));
  // Else the head has waited as long as it has patience with its nodes.
  CHECK(scene.has_said("node 1 (node) is gone: "));
}
