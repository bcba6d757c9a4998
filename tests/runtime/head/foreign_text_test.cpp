// A head and peers that check nothing of what they send.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "head/head.hpp"
#include "process/codec.hpp"
#include "transport/handshake.hpp"
#include "transport/proof.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using Clock = std::chrono::steady_clock;

namespace {

const std::string kBad = "bad\xff\xfe";

struct Scene {
  boost::asio::io_context loop{1};
  head::HeadOptions options = head_options();
  head::Head head{loop, options};

  static head::HeadOptions head_options() {
    head::HeadOptions options;
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
  ~Peer() { connection->close(); }
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

void write_need(wire::Request::Builder request, const std::string& resource, const std::string& value) {
  auto amount = request.initResources(1)[0];
  amount.setName(resource);
  amount.setUnits(1);
  auto label = request.initLabels(1)[0];
  label.setKey("zone");
  label.setValue(value);
}

}  // namespace

TEST_CASE("a node whose names are none is refused with the reason, and the head serves on", "[head][name][refusal]") {
  Scene scene;
  Peer administrator(scene, wire::Role::ADMIN);
  const std::vector<std::pair<std::string, std::function<void(wire::NodeJoin::Builder)>>> all{
      {"the node's name 'bad", [](auto join) { join.setName(kBad); }},
      {"the node's name 'xxx", [](auto join) { join.setName(std::string(1'000'000, 'x')); }},
      {"the resource 'bad", [](auto join) { join.initResources(1)[0].setName(kBad); }},
      {"the resource ''", [](auto join) { join.initResources(1); }},
      {"the label 'bad", [](auto join) { join.initLabels(1)[0].setKey(kBad); }},
      {"the label's value 'two",
       [](auto join) {
         join.initLabels(1)[0].setKey("zone");
         join.getLabels()[0].setValue("two\nlines");
       }},
  };
  for (const auto& [named, fill] : all) {
    Peer node(scene, wire::Role::NODE);
    node.join(fill);
    CHECK_FALSE(node.joined);
    CHECK_THAT(node.shutdown, Catch::StartsWith(named) && Catch::Contains("give 1 to 256 bytes of UTF-8"));
    CHECK(administrator.status()["nodes"].empty());
  }
}

TEST_CASE("a node that names its own number, or any label of the head's, is refused with the reason",
          "[head][labels][refusal]") {
  Scene scene;
  Peer administrator(scene, wire::Role::ADMIN);
  for (const std::string key : {"troupe.node", "troupe.zone"}) {
    Peer node(scene, wire::Role::NODE);
    node.join([&](auto join) { join.initLabels(1)[0].setKey(key); });
    CHECK_FALSE(node.joined);
    CHECK_THAT(node.shutdown, Catch::StartsWith("a node cannot offer the label '" + key + "'") &&
                                  Catch::Contains("choose another name"));
    CHECK(administrator.status()["nodes"].empty());
  }
}

TEST_CASE("what a driver asks for with names that are none is refused, and the head serves on",
          "[head][name][refusal]") {
  Scene scene;
  Peer administrator(scene, wire::Role::ADMIN);
  Peer driver(scene, wire::Role::DRIVER);
  driver.register_job("two\nlines\x1b[31m");
  const std::vector<std::pair<std::string, std::function<void(wire::Ask::Builder)>>> all{
      {"the actor's name 'bad", [](auto ask) { ask.initActor().setName(kBad); }},
      {"the actor's name 'xxx", [](auto ask) { ask.initActor().setName(std::string(1'000'000, 'x')); }},
      {"the actor's name 'bad", [](auto ask) { ask.initActorFind().setName(kBad); }},
      {"the resource 'bad", [](auto ask) { write_need(ask.initLease(), kBad, "a"); }},
      {"the label's value 'bad", [](auto ask) { write_need(ask.initLease(), "cpu", kBad); }},
      {"the resource 'bad", [](auto ask) { write_need(ask.initGang().initEach(), kBad, "a"); }},
  };
  for (const auto& [named, fill] : all) {
    const auto refused = driver.ask(fill);
    CHECK(refused.kind == Failure::Kind::Refused);
    CHECK_THAT(refused.message, Catch::StartsWith(named) && Catch::Contains("give 1 to 256 bytes of UTF-8"));
    const auto status = administrator.status();
    CHECK(status["actors"].empty());
    CHECK(status["pending"].empty());
    CHECK(status["jobs"][0]["name"] == "two\xef\xbf\xbdlines\xef\xbf\xbd[31m");
  }
}

TEST_CASE("text that is not UTF-8, or steers a terminal, does no harm in what a peer says", "[head][name][failure]") {
  Scene scene;
  Peer administrator(scene, wire::Role::ADMIN);
  administrator.say(
      [](wire::Message::Builder message) { message.setAdminRequest(std::string(R"({"do": ")") + kBad + "\"}"); });
  REQUIRE(scene.run_until([&] { return !administrator.reply.empty(); }));
  CHECK_THAT(administrator.reply, Catch::Contains("error"));
  Peer driver(scene, wire::Role::DRIVER);
  driver.register_job("job");
  driver.say([](wire::Message::Builder message) {  // an actor whose type comes back in the status
    auto actor = message.initAsk().initActor();
    actor.setType(kBad + "\x1b[2J");
    actor.setName("a");
    actor.setActor(9);
  });
  CHECK(driver.status()["jobs"][0]["name"] == "job");
  const auto actors = administrator.status()["actors"];
  REQUIRE(actors.size() == 1);
  CHECK(actors[0]["type"] == "bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd[2J");
}
