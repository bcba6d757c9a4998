// A head and peers that check nothing of what they send.
#include <functional>
#include <string>
#include <vector>

#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;

namespace {

const std::string kBad = "bad\xff\xfe";

void write_need(wire::Request::Builder request, const std::string& resource,
                const std::string& value) {
  auto amount = request.initResources(1)[0];
  amount.setName(resource);
  amount.setUnits(1);
  auto label = request.initLabels(1)[0];
  label.setKey("zone");
  label.setValue(value);
}

}  // namespace

TEST_CASE("a node whose names are none is refused with the reason, and the head serves on",
          "[head][name][refusal]") {
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
    CHECK_THAT(node.shutdown,
               Catch::StartsWith(named) && Catch::Contains("give 1 to 256 bytes of UTF-8"));
    CHECK(administrator.status()["nodes"].empty());
  }
}

TEST_CASE(
    "a node that names its own number, or any label of the head's, is refused with the reason",
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
  const std::vector<std::pair<std::string, std::function<void(wire::HeadRequest::Builder)>>> all{
      {"the actor's name 'bad", [](auto ask) { ask.initActor().setName(kBad); }},
      {"the actor's name 'xxx",
       [](auto ask) { ask.initActor().setName(std::string(1'000'000, 'x')); }},
      {"the actor's name 'bad", [](auto ask) { ask.initActorFind().setName(kBad); }},
      {"the resource 'bad", [](auto ask) { write_need(ask.initLease(), kBad, "a"); }},
      {"the label's value 'bad", [](auto ask) { write_need(ask.initLease(), "cpu", kBad); }},
      {"the resource 'bad", [](auto ask) { write_need(ask.initGang().initEach(), kBad, "a"); }},
  };
  for (const auto& [named, fill] : all) {
    const auto refused = driver.ask(fill);
    CHECK(refused.kind == Failure::Kind::Refused);
    CHECK_THAT(refused.message,
               Catch::StartsWith(named) && Catch::Contains("give 1 to 256 bytes of UTF-8"));
    const auto status = administrator.status();
    CHECK(status["actors"].empty());
    CHECK(status["pending"].empty());
    CHECK(status["jobs"][0]["name"] == "two\xef\xbf\xbdlines\xef\xbf\xbd[31m");
  }
}

TEST_CASE("text that is not UTF-8, or steers a terminal, does no harm in what a peer says",
          "[head][name][failure]") {
  Scene scene;
  Peer administrator(scene, wire::Role::ADMIN);
  administrator.say([](wire::Message::Builder message) {
    message.setAdminRequest(std::string(R"({"do": ")") + kBad + "\"}");
  });
  REQUIRE(scene.run_until([&] { return !administrator.reply.empty(); }));
  CHECK_THAT(administrator.reply, Catch::Contains("error"));
  Peer driver(scene, wire::Role::DRIVER);
  driver.register_job("job");
  driver.say([](wire::Message::Builder message) {  // an actor whose type comes back in the status
    auto actor = message.initHeadRequest().initActor();
    actor.setType(kBad + "\x1b[2J");
    actor.setName("a");
    actor.setActor(9);
  });
  CHECK(driver.status()["jobs"][0]["name"] == "job");
  const auto actors = administrator.status()["actors"];
  REQUIRE(actors.size() == 1);
  CHECK(actors[0]["type"] == "bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd[2J");
}
