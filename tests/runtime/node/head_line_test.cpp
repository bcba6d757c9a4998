// A node whose connection to its head breaks: with a head that lives, that has gone, and that does
// not take it back.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <catch2/catch.hpp>

#include "fake_head.hpp"
#include "guard.hpp"
#include "node/head_redial.hpp"
#include "node/node.hpp"
#include "test_program.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;

/// A node that has joined a head which gives it what it needs to come back, with one process.
struct NodeWithHead {
  test::TemporaryDirectory directory;
  asio::io_context loop;
  test::FakeHead head{loop};
  NodeOptions options;
  std::unique_ptr<Node> node;
  bool joined = false;
  std::optional<std::pair<std::string, bool>> stopped;

  NodeWithHead() {
    head.takes_back = true;
    options.head.host = "127.0.0.1";
    options.head.port = head.port();
    options.token = test::FakeHead::token();
    options.gpus = 0;
    options.cache_directory = directory.path / "cache";
    options.heartbeat = 50ms;
  }
  /// -> the process.
  pid_t start() {
    node = std::make_unique<Node>(loop, options);
    node->start([this](runtime::NodeId) { joined = true; },
                [this](std::string why, bool failed) { stopped.emplace(std::move(why), failed); });
    test::run_until(loop, "the node to join", [this] { return joined; });
    auto program = describe_program(0, nullptr);
    program.arguments = {"the-program", "worker"};
    program.directory = std::filesystem::temp_directory_path();
    head.start_job(5, program);
    head.start_process(7, 5);
    test::run_until(loop, "the process", [this] { return head.ready.contains(7); });
    return head.ready[7];
  }
  void wait_until_stopped() {
    test::run_until(loop, "the node to stop", [this] { return stopped.has_value(); });
  }
};

}  // namespace

TEST_CASE("a node whose connection breaks keeps its processes, and hears all that its head says",
          "[node][returns]") {
  NodeWithHead scene;
  const auto process = scene.start();
  for (std::uint64_t round = 1; round <= 5; ++round) {
    scene.head.cut();
    scene.head.command(7, 100 + round, "pid");  // before, while and after it is away
    test::run_until(scene.loop, "the node to be back", [&] { return scene.head.resumed >= round; });
    scene.head.start_process(10 + round, 5);
    test::run_until(scene.loop, "an answer and a process", [&] {
      return scene.head.answers.contains(100 + round) && scene.head.ready.contains(10 + round);
    });
    CHECK(scene.head.answers[100 + round] == std::to_string(process));
  }
  CHECK(scene.head.exited.empty());
  CHECK_FALSE(scene.stopped);
  scene.node->stop("the test is over");
  scene.wait_until_stopped();
}

TEST_CASE("a node whose connection breaks stops at once where its head has gone, or refuses it",
          "[node][returns][stop]") {
  NodeWithHead scene;
  const auto process = scene.start();
  const auto head = "the head at 127.0.0.1:" + std::to_string(scene.head.port());
  SECTION("gone") {
    scene.head.stop_listening();
    scene.head.vanish();
    scene.wait_until_stopped();
    CHECK(scene.stopped->first == head + " is gone: the peer closed the connection");
  }
  SECTION("refused") {
    scene.head.refuses_with = "it has taken node 1 for lost";
    scene.head.cut();
    scene.wait_until_stopped();
    CHECK(scene.stopped->first ==
          "the connection to " + head +
              " has broken (the peer closed the connection), and the head does not take this node "
              "back: it has taken node 1 for lost: start it again");
  }
  CHECK(scene.stopped->second);
  CHECK(!test::runs(process));
}

TEST_CASE("a node whose connection leads nowhere any more, and does not end, makes another one",
          "[node][returns]") {
  NodeWithHead scene;
  const auto process = scene.start();
  scene.head.echoes = false;
  test::run_until(scene.loop, "the node to be back", [&] { return scene.head.resumed > 0; });
  scene.head.echoes = true;
  scene.head.command(7, 100, "pid");
  test::run_until(scene.loop, "an answer", [&] { return scene.head.answers.contains(100); });
  CHECK(scene.head.answers[100] == std::to_string(process));
  CHECK_FALSE(scene.stopped);
  scene.node->stop("the test is over");
  scene.wait_until_stopped();
}

TEST_CASE("a node waits for a silent head whose port takes no new connections meanwhile",
          "[node][returns]") {
  NodeWithHead scene;
  const auto process = scene.start();
  scene.head.echoes = false;
  scene.head.stop_listening();
  const auto beats = scene.head.beats;
  test::run_until(scene.loop, "beats in vain", [&] { return scene.head.beats >= beats + 20; });
  CHECK_FALSE(scene.stopped);
  scene.head.echoes = true;
  scene.head.command(7, 100, "pid");
  test::run_until(scene.loop, "an answer", [&] { return scene.head.answers.contains(100); });
  CHECK(scene.head.answers[100] == std::to_string(process));
  CHECK(scene.head.resumed == 0);
  scene.node->stop("the test is over");
  scene.wait_until_stopped();
}

TEST_CASE("what a node says before it knows that it has joined is said behind that",
          "[node][returns]") {
  NodeWithHead scene;
  scene.head.is_slow = true;
  scene.node = std::make_unique<Node>(scene.loop, scene.options);
  scene.node->start(
      [&](runtime::NodeId) { scene.joined = true; },
      [&](std::string why, bool failed) { scene.stopped.emplace(std::move(why), failed); });
  test::run_until(scene.loop, "the join", [&] { return scene.head.joined.size() == 1; });
  std::this_thread::sleep_for(3200ms);  // of which it tells its head
  const auto beats = scene.head.beats;
  test::run_until(scene.loop, "a beat", [&] { return scene.head.beats > beats; });
  CHECK(scene.head.stood_still == 0);
  scene.head.welcome();
  test::run_until(scene.loop, "the news", [&] { return scene.head.stood_still == 1; });
  scene.head.cut();
  test::run_until(scene.loop, "the node to be back or to stop",
                  [&] { return scene.head.resumed == 1 || scene.stopped; });
  CHECK_FALSE(scene.stopped);
  CHECK(scene.head.stood_still == 1);
  scene.node->stop("the test is over");
  scene.wait_until_stopped();
}

TEST_CASE("a connection that breaks again at once is not made again in a loop", "[node][returns]") {
  NodeWithHead scene;
  scene.options.heartbeat = 10s;  // an echo of which says that a connection lasts
  scene.options.head_silence = 60s;
  scene.start();
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t round = 1; round <= 5; ++round) {
    scene.head.echoes = false;
    scene.head.cut();
    test::run_until(scene.loop, "the node to be back", [&] { return scene.head.resumed >= round; });
  }
  // Pauses of 0, 50, 100, 200 and 400 ms.
  CHECK(std::chrono::steady_clock::now() - begun >= 750ms);
  CHECK_FALSE(scene.stopped);
  scene.node->stop("the test is over");
  scene.wait_until_stopped();
}

TEST_CASE("a node that finds no way back to its head keeps its processes as long as it may",
          "[node][returns][stop]") {
  NodeWithHead scene;
  scene.options.head_silence = 1s;
  const auto process = scene.start();
  // Whoever takes the connection now says nothing.
  const auto port = scene.head.port();
  scene.head.stop_listening();
  const auto silent =
      transport::Listener::tcp(scene.loop, "127.0.0.1", port, [](transport::Socket) {});
  scene.head.cut();
  scene.wait_until_stopped();
  CHECK_THAT(scene.stopped->first,
             Catch::Contains("could not be made again within 1 s, for which this node keeps its "
                             "processes (--head-silence): "));
  CHECK(scene.stopped->second);
  CHECK(!test::runs(process));
}

TEST_CASE("a node ends whose head takes it back again and again and echoes no heartbeat",
          "[node][returns][stop]") {
  NodeWithHead scene;
  // Longer than the pauses between two attempts: each connection is made within that time.
  scene.options.head_silence = HeadRedial::kLongestPause + 1s;
  scene.start();
  scene.head.echoes = false;
  scene.head.cut();
  test::run_until(scene.loop, "the node to stop", [&, seen = std::size_t{0}]() mutable {
    if (std::exchange(seen, scene.head.resumed) != scene.head.resumed) scene.head.cut();
    return scene.stopped.has_value();
  });
  CHECK(scene.head.resumed > 1);
  CHECK_THAT(scene.stopped->first, Catch::Contains("keeps its processes (--head-silence)"));
  CHECK(scene.stopped->second);
}

}  // namespace troupe::node
