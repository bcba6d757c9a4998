#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "harness.hpp"
#include "head/head.hpp"
#include "head/watches.hpp"

using namespace troupe;
using namespace troupe::transfer::test;
using troupe::test::kGuard;

namespace {

/// The head, with nodes and drivers that are a connection each, on one loop.
struct Cluster {
  boost::asio::io_context loop{1};
  head::Head head{loop,
                  {.host = "127.0.0.1",
                   .port = 0,
                   .unix_name = {},
                   .token = token(),
                   .directory = {},
                   .log = {}}};

  bool until(const std::function<bool()>& condition) { return runs_until(loop, condition); }

  transport::ConnectionPtr connect(wire::Role role) {
    transport::ConnectionPtr made;
    transport::connect(
        loop, {.host = "127.0.0.1", .port = head.port(), .unix_name = {}},
        {.self = {.role = role, .cluster = {}}, .key = token(), .timeout = kGuard},
        [&](const transport::ConnectionPtr& connection, const transport::Accepted&) {
          made = connection;
        },
        [](const transport::Denied& denied) { FAIL(denied.why); });
    REQUIRE(until([&] { return made != nullptr; }));
    return made;
  }
};

struct JoinedNode {
  transport::ConnectionPtr connection;
  std::vector<ProcessId> ended;
  std::vector<store::NodeId> nodes_ended;
  std::vector<ProcessId> started;
  store::NodeId number;

  explicit JoinedNode(Cluster& cluster) : connection(cluster.connect(wire::Role::NODE)) {
    connection->hand_over(
        {},
        [this](wire::Message::Reader message) {
          if (message.isNodeJoined()) number = store::NodeId(message.getNodeJoined().getNode());
          if (message.isNodeEnded()) nodes_ended.push_back(store::NodeId(message.getNodeEnded()));
          if (message.isStartProcess())
            started.push_back(ProcessId(message.getStartProcess().getProcess()));
          if (message.isOwnerEnded()) ended.push_back(ProcessId(message.getOwnerEnded()));
        },
        [](const std::string&) {});
    transport::Outgoing join;
    auto node = join.root().initNodeJoin();
    node.setName("test");
    auto resources = node.initResources(1);
    resources[0].setName("cpu");
    resources[0].setUnits(1);
    node.initStore().setPort(4711);
    connection->send(std::move(join));
    REQUIRE(cluster.until([this] { return static_cast<bool>(number); }));
  }
  void watch(ProcessId owner) const {
    transport::Outgoing message;
    message.root().setOwnerWatch(owner.value());
    connection->send(std::move(message));
  }
  void watch_node(store::NodeId node) const {
    transport::Outgoing message;
    message.root().setNodeWatch(node.value());
    connection->send(std::move(message));
  }
  void name_orphan(ProcessId owner, ProcessId writer, std::uint64_t object) const {
    transport::Outgoing message;
    auto orphans = message.root().initOrphaned();
    orphans.setOwner(owner.value());
    orphans.setWriter(writer.value());
    orphans.initNumbers(1).set(0, object);
    orphans.initAt().setPort(1);  // which is not its to say
    connection->send(std::move(message));
  }
};

struct Driver {
  transport::ConnectionPtr connection;
  ProcessId process;
  std::vector<ObjectId> orphans;
  NodeAddress orphans_at;
  std::set<std::uint64_t> done;  // asks

  explicit Driver(Cluster& cluster) : connection(cluster.connect(wire::Role::DRIVER)) {
    connection->hand_over(
        {},
        [this](wire::Message::Reader message) {
          if (message.isRegistered()) process = ProcessId(message.getRegistered().getProcess());
          if (!message.isHeadNotice()) return;
          const auto tell = message.getHeadNotice();
          if (tell.isDone()) done.insert(tell.getId());
          if (!tell.isOrphans()) return;
          for (const auto number : tell.getOrphans().getNumbers())
            orphans.push_back({ProcessId(tell.getOrphans().getWriter()), number});
          const auto at = tell.getOrphans().getAt();
          orphans_at = {.node = store::NodeId(at.getNode()), .host = {}, .port = at.getPort()};
        },
        [](const std::string&) {});
    transport::Outgoing message;
    message.root().initRegister().setName("test");
    connection->send(std::move(message));
    REQUIRE(cluster.until([this] { return static_cast<bool>(process); }));
  }
  void ask(std::uint64_t id, const std::function<void(wire::HeadRequest::Builder)>& fill) const {
    transport::Outgoing message;
    auto ask = message.root().initHeadRequest();
    ask.setId(id);
    fill(ask);
    connection->send(std::move(message));
  }
  void ask_for_cpu(std::uint64_t id) const {
    ask(id, [](wire::HeadRequest::Builder out) {
      auto resources = out.initLease().initResources(1);
      resources[0].setName("cpu");
      resources[0].setUnits(1);
    });
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
  two.watch(12'345_process);  // which never was
  REQUIRE(cluster.until([&] { return !two.ended.empty(); }));
  CHECK(two.ended == std::vector<ProcessId>{12'345_process});
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
  head::Watches<ProcessId> watches;
  watches.add(1_process, 7_node);
  watches.add(1_process, 8_node);
  watches.add(2_process, 7_node);
  watches.node_lost(7_node);
  CHECK(watches.size() == 1);
  CHECK(watches.ended(2_process).empty());
  CHECK(watches.ended(1_process) == std::set<store::NodeId>{8_node});
  CHECK(watches.ended(1_process).empty());
}

TEST_CASE("the head tells each node and each process that asked when a node has ended",
          "[transfer][head]") {
  Cluster cluster;
  JoinedNode one(cluster), two(cluster), gone(cluster);
  Driver driver(cluster), left(cluster);
  const auto ask_about = [](const Driver& who, store::NodeId node) {
    who.ask(7, [node](wire::HeadRequest::Builder ask) { ask.setNodeEnd(node.value()); });
  };
  one.watch_node(gone.number);
  two.watch_node(12'345_node);  // which never was
  ask_about(driver, gone.number);
  ask_about(left, gone.number);
  REQUIRE(cluster.until([&] { return !two.nodes_ended.empty(); }));
  CHECK(two.nodes_ended == std::vector<store::NodeId>{12'345_node});
  CHECK(one.nodes_ended.empty());
  CHECK(driver.done.empty());
  left.connection->close();
  gone.connection->close();
  REQUIRE(cluster.until([&] { return !one.nodes_ended.empty() && !driver.done.empty(); }));
  CHECK(one.nodes_ended == std::vector<store::NodeId>{gone.number});
  CHECK(driver.done == std::set<std::uint64_t>{7});
  CHECK(two.nodes_ended.size() == 1);
}

TEST_CASE(
    "what a process left to an owner elsewhere is named to that one, and by its own node alone",
    "[transfer][head]") {
  Cluster cluster;
  JoinedNode one(cluster);
  Driver driver(cluster), other(cluster);
  driver.ask_for_cpu(1);
  REQUIRE(cluster.until([&] { return !one.started.empty(); }));
  JoinedNode two(cluster);
  const auto writer = one.started.front();
  two.name_orphan(driver.process, writer, 1);          // not its process
  one.name_orphan(other.process, writer, 2);           // of another job
  one.name_orphan(driver.process, 12'345_process, 3);  // there is none
  one.name_orphan(driver.process, driver.process, 4);
  one.name_orphan(12'345_process, writer, 5);
  one.name_orphan(driver.process, writer, 6);
  REQUIRE(cluster.until([&] { return !driver.orphans.empty(); }));
  CHECK(driver.orphans == std::vector<ObjectId>{{writer, 6}});
  CHECK(driver.orphans_at.node == one.number);
  CHECK(driver.orphans_at.port == 4711);
  // What the head was told before is dealt with once it has answered what came after.
  for (auto* node : {&one, &two}) node->watch_node(12'345_node);
  REQUIRE(cluster.until([&] { return !one.nodes_ended.empty() && !two.nodes_ended.empty(); }));
  CHECK(driver.orphans.size() == 1);
  CHECK(other.orphans.empty());
}
