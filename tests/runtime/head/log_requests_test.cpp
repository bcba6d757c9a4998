// How long the head waits for nodes that are asked for logs: in virtual time.
#include "head/output/log_requests.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <capnp/message.h>
#include <sys/socket.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "transport/socket/socket.hpp"

using namespace std::chrono_literals;
using nlohmann::json;
using troupe::head::LogRequests;
using troupe::head::NodeId;
using troupe::head::Routes;

namespace {

/// A head that asks two nodes, none of which ever reads anything.
struct AskedNodes {
  boost::asio::io_context loop{1};
  Routes routes;
  LogRequests::Clock::time_point now{1h};
  LogRequests logs{routes, now};
  std::vector<troupe::transport::OwnedFd> ends;
  std::optional<json> answer;

  explicit AskedNodes(const std::string& second = "second") {
    add(NodeId(1), "first");
    add(NodeId(2), second);
    logs.ask(
        {}, [this](const json& given) { answer = given; }, now);
  }

  void add(NodeId id, const std::string& name) {
    std::array<int, 2> pair{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
    ends.emplace_back(pair[1]);
    boost::system::error_code error;
    auto socket =
        troupe::transport::adopt(loop, AF_UNIX, troupe::transport::OwnedFd(pair[0]), error);
    REQUIRE_FALSE(error);
    Routes::Node node;
    node.line = troupe::transport::ResumableLine::make(
        troupe::transport::Connection::make(std::move(socket)));
    node.name = name;
    node.logs = "/logs";
    routes.add_node(id, std::move(node));
  }
  void reply(NodeId from, std::uint64_t to = 1) {
    capnp::MallocMessageBuilder message;
    auto reply = message.initRoot<troupe::wire::LogReply>();
    reply.setId(to);
    logs.on_reply(from, reply.asReader());
  }
  void ask_for_objects() {
    answer.reset();
    LogRequests::Wanted wanted;
    wanted.most = 5;
    wanted.objects = true;
    logs.ask(
        wanted, [this](const json& given) { answer = given; }, now);
  }
  void ask_what_runs(std::chrono::seconds patience) {
    answer.reset();
    LogRequests::Wanted wanted;
    wanted.calls = wanted.running = true;
    wanted.patience = patience;
    logs.ask(
        wanted, [this](const json& given) { answer = given; }, now);
  }
  void reply_with_object(NodeId from, std::uint8_t state) {
    capnp::MallocMessageBuilder message;
    auto reply = message.initRoot<troupe::wire::LogReply>();
    reply.setId(2);
    reply.setObjectsInAll(7);
    auto object = reply.initObjects(1)[0];
    object.initObject().setProcess(4);
    object.getObject().setNumber(9);
    object.setBytes(4096);
    object.setState(state);
    object.initPinnedBy(1).set(0, 3);
    logs.on_reply(from, reply.asReader());
  }
  /// A tick comes when it is due, until so much time has passed.
  void run(LogRequests::Clock::duration time) {
    for (const auto end = now + time; now < end && !answer;) logs.tick(now += LogRequests::kTick);
  }
  void stand_still(LogRequests::Clock::duration time) { logs.tick(now += time); }
  json silent() const { return answer.value().at("silent"); }
};

}  // namespace

TEST_CASE("a node that says nothing is waited for 10 s, and then named", "[head][logs]") {
  AskedNodes head;
  head.reply(NodeId(1));
  head.run(9s);
  CHECK_FALSE(head.answer);
  head.run(2s);
  REQUIRE(head.answer);
  CHECK(head.silent() == json{"second"});
}

TEST_CASE("a node that was not asked is not waited for", "[head][logs]") {
  AskedNodes head;
  LogRequests::Wanted wanted;
  wanted.nodes = {NodeId(2), NodeId(3)};  // the third is not there
  head.logs.ask(
      wanted, [&](const json& given) { head.answer = given; }, head.now);
  head.reply(NodeId(2), 2);
  REQUIRE(head.answer);
  CHECK(head.silent().empty());
}

TEST_CASE("a node that says nothing is named with its number where another one has its name",
          "[head][logs]") {
  AskedNodes head("first");
  head.reply(NodeId(1));
  head.run(11s);
  CHECK(head.silent() == json{"first (node 2)"});
  CHECK(head.answer.value().at("silent_nodes") == json{2});
}

TEST_CASE("what the head stands still is not time in which nodes were silent", "[head][logs]") {
  AskedNodes head;
  for (int i = 0; i < 20; ++i) {
    head.stand_still(900ms);
    head.run(200ms);
  }
  head.stand_still(1h);
  CHECK_FALSE(head.answer);
  head.reply(NodeId(1));
  head.reply(NodeId(2));
  REQUIRE(head.answer);
  CHECK(head.silent().empty());
}

TEST_CASE("a node that is lost before it answers is named, and no longer waited for",
          "[head][logs]") {
  AskedNodes head;
  head.reply(NodeId(2));
  SECTION("as its connection ends") {
    head.routes.remove_node(NodeId(1));
    head.logs.node_gone(NodeId(1));
  }
  SECTION("as the head gives it up") {
    head.routes.remove_node(NodeId(1));
    head.run(LogRequests::kTick);
  }
  REQUIRE(head.answer);
  CHECK(head.silent() == json{"first"});
}

TEST_CASE("a request may wait for less time than others do", "[head][logs]") {
  AskedNodes head;
  head.reply(NodeId(1));
  head.reply(NodeId(2));
  head.ask_what_runs(2s);
  head.reply(NodeId(2), 2);
  head.run(1s);
  CHECK_FALSE(head.answer);
  head.run(2s);
  REQUIRE(head.answer);
  CHECK(head.silent() == json{"first"});
}

TEST_CASE("objects are those of the nodes that answer, and the others are named", "[head][logs]") {
  AskedNodes head;
  head.reply(NodeId(1));
  head.reply(NodeId(2));
  CHECK_FALSE(head.answer.value().contains("objects"));
  head.ask_for_objects();
  head.reply_with_object(NodeId(1), 2);
  head.run(11s);
  const auto& answer = head.answer.value();
  CHECK(head.silent() == json{"second"});
  CHECK(answer.at("objects_in_all") == 7);
  REQUIRE(answer.at("objects").size() == 1);
  const auto& object = answer.at("objects")[0];
  CHECK(object.at("object") == "4.9");
  CHECK(object.at("node_name") == "first");
  CHECK(object.at("state") == "pinned");
  CHECK(object.at("pinned_by") == json{3});
}

TEST_CASE("each of many nodes tells its share of objects, so that the head can bear all of them",
          "[head][logs]") {
  CHECK(LogRequests::most_objects_of_each(10, 3) == 10);
  CHECK(LogRequests::most_objects_of_each(10'000, 5) == 10'000);
  CHECK(LogRequests::most_objects_of_each(10'000, 100) == 500);
  CHECK(LogRequests::most_objects_of_each(10'000, 1'000'000) == 1);
}

TEST_CASE("the state of an object that a newer node tells is not known", "[head][logs]") {
  AskedNodes head;
  head.ask_for_objects();
  head.reply_with_object(NodeId(1), 200);
  head.reply_with_object(NodeId(2), 3);
  CHECK(head.answer.value().at("objects")[0].at("state") == "unknown");
  CHECK(head.answer.value().at("objects")[1].at("state") == "on disk");
}
