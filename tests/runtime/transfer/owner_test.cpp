#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "harness.hpp"
#include "head/head.hpp"
#include "head/owner_watches.hpp"

using namespace troupe;
using namespace troupe::transfer::test;

namespace {

/// The head, with nodes and drivers that are a connection each, on one loop.
struct Cluster {
  boost::asio::io_context loop{1};
  head::Head head{loop,
                  {.host = "127.0.0.1", .port = 0, .unix_name = {}, .token = token(), .directory = {}, .log = {}}};

  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 1min;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.restart();
      loop.run_one_for(10ms);
    }
    return true;
  }

  transport::ConnectionPtr connect(wire::Role role) {
    transport::ConnectionPtr made;
    transport::connect(
        loop, {.host = "127.0.0.1", .port = head.port(), .unix_name = {}},
        {.self = {.role = role, .cluster = {}}, .key = token(), .timeout = 20s},
        [&](const transport::ConnectionPtr& connection, const transport::Accepted&) { made = connection; },
        [](const transport::Denied& denied) { FAIL(denied.why); });
    REQUIRE(until([&] { return made != nullptr; }));
    return made;
  }
};

struct JoinedNode {
  transport::ConnectionPtr connection;
  std::vector<ProcessId> ended;
  bool joined = false;

  explicit JoinedNode(Cluster& cluster) : connection(cluster.connect(wire::Role::NODE)) {
    connection->hand_over(
        {},
        [this](wire::Message::Reader message) {
          joined = joined || message.isNodeJoined();
          if (message.isOwnerEnded()) ended.push_back(message.getOwnerEnded());
        },
        [](const std::string&) {});
    transport::Outgoing join;
    join.root().initNodeJoin().setName("test");
    connection->send(std::move(join));
    REQUIRE(cluster.until([this] { return joined; }));
  }
  void watch(ProcessId owner) const {
    transport::Outgoing message;
    message.root().setOwnerWatch(owner);
    connection->send(std::move(message));
  }
};

struct Driver {
  transport::ConnectionPtr connection;
  ProcessId process = 0;

  explicit Driver(Cluster& cluster) : connection(cluster.connect(wire::Role::DRIVER)) {
    connection->hand_over(
        {},
        [this](wire::Message::Reader message) {
          if (message.isRegistered()) process = message.getRegistered().getProcess();
        },
        [](const std::string&) {});
    transport::Outgoing message;
    message.root().initRegister().setName("test");
    connection->send(std::move(message));
    REQUIRE(cluster.until([this] { return process != 0; }));
  }
};

}  // namespace

TEST_CASE("the head tells each node that asked when an owner has ended", "[transfer][head]") {
  Cluster cluster;
  JoinedNode one(cluster), two(cluster), gone(cluster);
  Driver driver(cluster), other(cluster);
  for (auto* node : {&one, &two, &gone}) node->watch(driver.process);
  one.watch(driver.process);
  one.watch(other.process);
  two.watch(12'345);  // which never was
  REQUIRE(cluster.until([&] { return !two.ended.empty(); }));
  CHECK(two.ended == std::vector<ProcessId>{12'345});
  gone.connection->close();
  driver.connection->close();
  REQUIRE(cluster.until([&] { return !one.ended.empty() && two.ended.size() == 2; }));
  CHECK(one.ended == std::vector<ProcessId>{driver.process});
  CHECK(two.ended.back() == driver.process);
  one.watch(driver.process);  // late
  REQUIRE(cluster.until([&] { return one.ended.size() == 2; }));
  CHECK(one.ended.back() == driver.process);
}

TEST_CASE("the head forgets what a node asked with the node", "[transfer][head]") {
  head::OwnerWatches watches;
  watches.add(1, 7);
  watches.add(1, 8);
  watches.add(2, 7);
  watches.node_lost(7);
  CHECK(watches.size() == 1);
  CHECK(watches.ended(2).empty());
  CHECK(watches.ended(1) == std::set<std::uint32_t>{8});
  CHECK(watches.ended(1).empty());
}
