#include <atomic>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "guard.hpp"
#include "harness.hpp"
#include "transfer/links.hpp"

using namespace troupe;
using namespace troupe::transfer::test;
using troupe::test::kGuard;

namespace {

bool pass(int, std::uint64_t, std::span<char>) { return true; }

/// The loop of Links, and on it a node that answers frees as the test says.
struct Peer {
  boost::asio::io_context loop{1};
  std::function<std::uint64_t(std::uint64_t number)> answer = [](std::uint64_t number) {
    return number;
  };
  std::vector<std::uint64_t> heard;  // numbers; 0: none
  std::vector<transport::ConnectionPtr> connections;
  std::unique_ptr<transport::Listener> listener = transport::Listener::tcp(
      loop, "127.0.0.1", 0, [this](transport::Socket socket) { accept(std::move(socket)); });

  NodeAddress address() const {
    return {.node = 9_node, .host = "127.0.0.1", .port = listener->port()};
  }

  void accept(transport::Socket socket) {
    transport::ServerOptions server;
    server.cluster = kCluster;
    server.key = [](const transport::Caller&) { return token(); };
    server.timeout = kGuard;
    transport::accept(
        std::move(socket), std::move(server),
        [this](const transport::ConnectionPtr& connection, const transport::Accepted&) {
          connections.push_back(connection);
          connection->hand_over(
              {},
              [this, raw = connection.get()](wire::Message::Reader message) {
                heard.push_back(message.isTransferFree() ? message.getTransferFree().getNumber()
                                                         : 0);
                const auto number = answer(heard.back());
                if (number == 0) return;
                transport::Outgoing out;
                out.root().setTransferFreed(number);
                raw->send(std::move(out));
              },
              [](const std::string&) {});
        },
        [](const transport::Denied&) {});
  }

  transfer::LinksOptions options() const {
    return {.as = {.self = {.role = wire::Role::NODE, .cluster = kCluster},
                   .key = token(),
                   .timeout = kGuard},
            .first_wait = 1ms,
            .longest_wait = 20ms};
  }

  bool until(const std::function<bool()>& condition) { return runs_until(loop, condition); }
};

}  // namespace

TEST_CASE("a free stays listed until it is acknowledged, and is sent again in order",
          "[transfer][free]") {
  Peer peer;
  transfer::Links links(peer.loop, peer.options(), {});
  peer.answer = [](std::uint64_t) { return 0; };
  for (std::uint64_t i = 1; i <= 3; ++i) links.free(peer.address(), kJob, {10_process, i});
  REQUIRE(peer.until([&] { return peer.heard.size() == 3; }));
  CHECK(links.listed() == 3);
  peer.answer = [](std::uint64_t number) { return number == 2 ? 2 : 0; };
  peer.connections.back()->close();
  REQUIRE(peer.until([&] { return links.listed() == 1; }));
  peer.answer = [](std::uint64_t number) { return number; };
  peer.connections.back()->close();
  REQUIRE(peer.until([&] { return links.listed() == 0; }));
  CHECK(peer.heard == std::vector<std::uint64_t>{1, 2, 3, 1, 2, 3, 3});
  peer.connections.back()->close();  // nothing is left to be said: no connection is made for it
  REQUIRE(peer.until([&] { return links.nodes() == 0; }));
  links.free(peer.address(), kJob, {10_process, 4});
  REQUIRE(peer.until([&] { return peer.heard.size() == 8 && links.listed() == 0; }));
  CHECK(peer.connections.size() == 4);
}

TEST_CASE("an answer to what was not asked counts for nothing", "[transfer][free]") {
  Peer peer;
  transfer::Links links(peer.loop, peer.options(), {});
  peer.answer = [&](std::uint64_t number) {
    return peer.connections.size() == 1   ? number + 1
           : peer.connections.size() == 2 ? ~std::uint64_t{0}
                                          : number;
  };
  links.free(peer.address(), kJob, {10_process, 1});
  REQUIRE(peer.until([&] { return links.listed() == 0; }));
  CHECK(peer.heard == std::vector<std::uint64_t>{1, 1, 1});
  CHECK(peer.connections.size() == 3);
}

TEST_CASE("of frees that a node does not acknowledge the oldest are given up", "[transfer][free]") {
  Peer peer;
  auto options = peer.options();
  options.most_listed = 3;
  transfer::Links links(peer.loop, options, {});
  peer.answer = [](std::uint64_t) { return 0; };
  for (std::uint64_t i = 1; i <= 5; ++i) links.free(peer.address(), kJob, {10_process, i});
  CHECK(links.listed() == 3);
  REQUIRE(peer.until([&] { return peer.heard.size() == 3; }));
  CHECK(peer.heard == std::vector<std::uint64_t>{3, 4, 5});
}

TEST_CASE(
    "a node that nobody finds is watched, and with its end or the job's nothing is left to be said",
    "[transfer][free]") {
  Peer peer;
  const auto address = peer.address();
  peer.listener.reset();
  std::vector<store::NodeId> watched;
  transfer::Links links(peer.loop, peer.options(),
                        [&](store::NodeId node) { watched.push_back(node); });
  links.free({}, kJob, {10_process, 1});
  CHECK(links.nodes() == 0);
  links.free(address, 1_job, {10_process, 1});
  links.free(address, 2_job, {20_process, 1});
  REQUIRE(peer.until([&] { return !watched.empty(); }));
  links.job_ended(1_job);
  CHECK(links.listed() == 1);
  links.job_ended(2_job);
  CHECK(links.nodes() == 0);
  links.free(address, 3_job, {30_process, 1});
  REQUIRE(peer.until([&] { return watched.size() == 2; }));
  CHECK(watched == std::vector<store::NodeId>{9_node, 9_node});
  links.node_ended(9_node);
  CHECK(links.nodes() == 0);
  peer.loop.restart();
  CHECK(peer.loop.run_for(kGuard) < 20);
  CHECK(peer.loop.stopped());  // nothing is left to wait for
}

TEST_CASE("a free that is lost with its connection reaches its node by the next one",
          "[transfer][exchange][free]") {
  Node origin(1_node), owner(4_node);
  origin.attach(10_process);
  owner.attach(40_process);
  const auto before = origin.statistics();
  std::atomic<bool> loses = false;
  Proxy proxy(origin.address(), pass,
              [&](int, std::uint64_t, std::span<char>) { return !loses.exchange(false); });
  const auto first = origin.put(10_process, kMiB, 40_process),
             second = origin.put(10_process, kMiB, 40_process);
  owner.free(40_process, first, proxy.address());
  REQUIRE(eventually([&] { return owner.freeing() == 0; }));
  CHECK(origin.statistics().objects == 1);
  loses = true;
  owner.free(40_process, second, proxy.address());
  CHECK(is_at_rest(origin, before));
  CHECK(eventually([&] { return owner.freeing() == 0; }));
  CHECK_FALSE(loses);
  CHECK(proxy.connections() >= 2);
}

TEST_CASE("what is freed twice since the answer was lost is freed, and nothing else",
          "[transfer][exchange][free]") {
  Node origin(1_node), owner(4_node);
  origin.attach(10_process);
  owner.attach(40_process);
  std::atomic<bool> loses = false;
  Proxy proxy(origin.address(),
              [&](int, std::uint64_t, std::span<char>) { return !loses.exchange(false); });
  const auto first = origin.put(10_process, kMiB, 40_process),
             second = origin.put(10_process, kMiB, 40_process);
  owner.free(40_process, first, proxy.address());
  REQUIRE(eventually([&] { return owner.freeing() == 0; }));
  loses = true;
  owner.free(40_process, first, proxy.address());
  REQUIRE(eventually([&] { return owner.freeing() == 0; }));
  CHECK_FALSE(loses);
  CHECK(origin.statistics().objects == 1);
  CHECK(origin.has(10_process, origin.get(10_process, second, kMiB, {}), second));
}

TEST_CASE("a node that cannot be reached for a while is told of frees afterwards",
          "[transfer][exchange][free]") {
  Node origin(1_node), owner(4_node);
  origin.attach(10_process);
  owner.attach(40_process);
  const auto before = origin.statistics();
  std::atomic<bool> is_down = true;
  Proxy proxy(origin.address(), [&](int, std::uint64_t, std::span<char>) { return !is_down; });
  const auto object = origin.put(10_process, kMiB, 40_process);
  owner.free(40_process, object, proxy.address());
  REQUIRE(eventually([&] { return proxy.connections() >= 3; }));
  CHECK(owner.freeing() == 1);
  CHECK(owner.nodes_watched() == std::set<store::NodeId>{1_node});
  is_down = false;
  CHECK(is_at_rest(origin, before));
  CHECK(eventually([&] { return owner.freeing() == 0; }));
}

TEST_CASE("a node is told nothing more once the head says that it has ended, or of a job that has",
          "[transfer][exchange][free]") {
  NodeAddress gone;
  {
    Node origin(1_node);
    gone = origin.address();
  }
  Node owner(4_node);
  owner.attach(40_process, 1_job);
  owner.attach(50_process, 2_job);
  owner.free(40_process, {10_process, 1}, gone);
  owner.free(50_process, {20_process, 1}, gone);
  REQUIRE(eventually([&] { return owner.nodes_watched() == std::set<store::NodeId>{1_node}; }));
  CHECK(owner.freeing() == 2);
  owner.job_ended(2_job);
  CHECK(owner.freeing() == 1);
  owner.node_ended(1_node);
  CHECK(owner.freeing() == 0);
}

TEST_CASE("copies are freed on nodes that could not be reached when the object was",
          "[transfer][exchange][free]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto before = here.statistics();
  const auto object = origin.put(10_process, kMiB);
  CHECK(here.has(20_process, here.get(20_process, object, kMiB, origin.address()), object));
  here.unpin(20_process, object);
  REQUIRE(eventually([&] { return origin.sending() == 0; }));
  here.stop_listening();
  origin.free(10_process, object);
  REQUIRE(eventually([&] { return origin.nodes_watched() == std::set<store::NodeId>{2_node}; }));
  CHECK(here.statistics().objects == 1);
  here.listen_again();
  CHECK(is_at_rest(here, before));
}

TEST_CASE("a free that comes before the create is not forgotten on another node either",
          "[transfer][exchange][free]") {
  Node origin(1_node), owner(4_node);
  origin.attach(10_process);
  owner.attach(40_process);
  const auto before = origin.statistics();
  owner.free(40_process, {10_process, 1}, origin.address());
  REQUIRE(eventually([&] { return owner.freeing() == 0; }));
  CHECK(origin.put(10_process, kMiB, 40_process) == ObjectId{10_process, 1});
  CHECK(is_at_rest(origin, before));
}

TEST_CASE("what a process leaves to an owner that is not here is named to the head",
          "[transfer][exchange][free]") {
  Node origin(1_node);
  origin.attach(10_process);
  origin.attach(11_process);
  const auto far = origin.put(10_process, kMiB, 40_process);
  origin.put(10_process, kMiB, 11_process);
  origin.put(10_process, kMiB);
  origin.detach(10_process);
  CHECK(origin.orphaned() == std::map<ProcessId, std::vector<ObjectId>>{{40_process, {far}}});
  CHECK(origin.statistics().objects == 2);
  origin.put(11_process, kMiB, 40_process);
  origin.job_ended();
  CHECK(origin.orphaned().size() == 1);
  CHECK(origin.orphaned().at(40_process).size() == 1);
}
