// How a head asks whether the process of a node lives: in which pauses, and what it makes of the
// answers.
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "head/returns/node_probe.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using head::NodeProbe;

namespace {

using ProbeClock = std::chrono::steady_clock;

/// A probe of what listens on a port, all on one loop.
struct ProbeScene {
  boost::asio::io_context loop{1};
  std::vector<ProbeClock::time_point> calls;  // that the port has taken
  std::vector<transport::Socket> held;
  int lives = 0, gone = 0;
  std::size_t calls_before_lives = 0;  // how many there were as `lives` was said
  ProbeClock::time_point lives_since;
  std::unique_ptr<transport::Listener> listener;
  std::shared_ptr<NodeProbe> probe;

  explicit ProbeScene(std::function<void(transport::Socket)> on_call)
      : listener(transport::Listener::tcp(
            loop, "127.0.0.1", 0, [this, on_call = std::move(on_call)](transport::Socket socket) {
              calls.push_back(ProbeClock::now());
              on_call(std::move(socket));
            })) {}

  void start(std::chrono::milliseconds timeout = troupe::test::kGuard) {
    transport::ClientOptions client;
    client.self.role = wire::Role::HEAD;
    client.timeout = timeout;
    probe = std::make_shared<NodeProbe>(
        loop, transport::Endpoint{.host = "127.0.0.1", .port = listener->port()}, client,
        NodeProbe::Callbacks{.lives =
                                 [this] {
                                   ++lives;
                                   calls_before_lives = calls.size();
                                   lives_since = ProbeClock::now();
                                 },
                             .gone = [this] { ++gone; }});
    probe->start();
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto end = ProbeClock::now() + troupe::test::kGuard;
    while (!condition() && ProbeClock::now() < end) loop.run_one_for(20ms);
    return condition();
  }
  bool is_called(std::size_t times) {
    return run_until([&] { return calls.size() >= times; });
  }
  ProbeClock::duration between(std::size_t call, std::size_t next) const {
    return calls.at(next - 1) - calls.at(call - 1);
  }
  /// What answered no longer listens: its process has ended.
  void check_that_its_end_is_seen() {
    listener.reset();
    held.clear();
    CHECK(run_until([&] { return gone > 0; }));
    CHECK(gone == 1);
    CHECK(lives == 1);
  }
};

}  // namespace

TEST_CASE("a node of whose process nobody knows is asked for again after a longer pause",
          "[runtime][head][returns]") {
  std::function<void(transport::Socket)> answer;
  ProbeScene scene([&](transport::Socket socket) { answer(std::move(socket)); });
  std::chrono::milliseconds timeout = troupe::test::kGuard;
  SECTION("its port takes the connection and says nothing") {
    answer = [&](transport::Socket socket) { scene.held.push_back(std::move(socket)); };
    timeout = 50ms;
  }
  SECTION("its port is another process's, which refuses the head") {
    answer = [](transport::Socket socket) {
      transport::ServerOptions server;
      server.refuse = [](const transport::Caller&) -> std::string { return "no head is expected"; };
      transport::accept(
          std::move(socket), server,
          [](const transport::ConnectionPtr&, const transport::Accepted&) {},
          [](const transport::Denied&) {});
    };
  }
  scene.start(timeout);
  REQUIRE(scene.is_called(2));
  CHECK(scene.lives == 1);
  CHECK(scene.calls.at(1) - scene.lives_since >= NodeProbe::kPauseUnanswered);
  scene.check_that_its_end_is_seen();
}

TEST_CASE("a node whose port hangs up is asked for again soon, so many times, and then more seldom",
          "[runtime][head][returns]") {
  constexpr std::size_t kTries = NodeProbe::kShortTries;
  ProbeScene scene([](transport::Socket) {});
  scene.start();
  REQUIRE(scene.is_called(kTries + 2));
  CHECK(scene.lives == 1);
  CHECK(scene.calls_before_lives == kTries);
  for (std::size_t call = 1; call < kTries; ++call)
    CHECK(scene.between(call, call + 1) >= NodeProbe::kPause);
  CHECK(scene.between(1, kTries) < (kTries - 1) * NodeProbe::kPauseUnanswered);
  CHECK(scene.between(kTries, kTries + 1) >= NodeProbe::kPauseUnanswered);
  CHECK(scene.between(kTries + 1, kTries + 2) >= NodeProbe::kPauseUnanswered);
  scene.check_that_its_end_is_seen();
}
