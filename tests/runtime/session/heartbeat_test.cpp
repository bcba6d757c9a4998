#include "session/heartbeat.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "session/driver.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using troupe::runtime::Heartbeat;

namespace {

/// A driver's beats, and a head that echoes them in the same loop.
struct Beating {
  std::chrono::milliseconds limit = 1s;
  boost::asio::io_context loop{1};
  bool echoes = true;
  int beats = 0;
  int silences = 0;
  int returns = 0;
  int ends = 0;
  Heartbeat heartbeat{loop,
                      50ms,
                      500ms,
                      limit,
                      {.send = [this](std::uint64_t) { beat(); },
                       .fell_silent = [this] { ++silences; },
                       .speaks_again = [this] { ++returns; },
                       .gone = [this] { ++ends; }}};

  /// Runs until it has beaten so often.
  void run_until_beat(int number) {
    const auto end = std::chrono::steady_clock::now() + troupe::test::kGuard;
    while (beats < number && std::chrono::steady_clock::now() < end) loop.run_one_for(50ms);
  }
  void beat() {
    ++beats;
    if (echoes) boost::asio::post(loop, [this] { heartbeat.echoed(); });
  }
};

}  // namespace

TEST_CASE("a head that does not echo is said to be silent, once, and then to be gone",
          "[session][heartbeat]") {
  Beating scene;
  scene.echoes = false;
  scene.heartbeat.start();
  scene.loop.run();  // ends where no further beat follows
  CHECK(scene.silences == 1);
  CHECK(scene.ends == 1);
  CHECK(scene.beats >= 2);
}

TEST_CASE("a head that echoes again was not gone", "[session][heartbeat]") {
  Beating scene{.limit = 10min};
  scene.echoes = false;
  scene.heartbeat.start();
  const auto end = std::chrono::steady_clock::now() + troupe::test::kGuard;
  const auto run_until = [&](const int& count) {
    while (count == 0 && std::chrono::steady_clock::now() < end) scene.loop.run_one_for(50ms);
  };
  run_until(scene.silences);
  scene.echoes = true;
  run_until(scene.returns);
  CHECK(scene.silences == 1);
  CHECK(scene.returns == 1);
  CHECK(scene.ends == 0);
  scene.heartbeat.stop();
}

TEST_CASE("a head that echoes is not silent, not even to a process that stood still for longer",
          "[session][heartbeat]") {
  Beating scene;
  scene.heartbeat.start();
  for (int times = 1; times <= 3; ++times) {
    scene.run_until_beat(4 * times);
    std::this_thread::sleep_for(800ms);  // as one in a debugger
  }
  scene.run_until_beat(16);
  CHECK(scene.silences == 0);
  CHECK(scene.ends == 0);
  CHECK(scene.beats >= 16);
  scene.heartbeat.stop();
}

TEST_CASE("a program is registered by a head that takes seconds for it", "[session][heartbeat]") {
  runtime::DriverOptions options;
  options.head = {.host = {}, .port = 0, .unix_name = "troupe-test-" + transport::random_name()};
  boost::asio::io_context loop{1};
  boost::asio::steady_timer late(loop);
  std::optional<std::weak_ptr<transport::Handshake>> handshake;
  transport::ConnectionPtr driver;
  const auto registers = [&](wire::Message::Reader message) {
    if (!message.isRegister()) return;
    late.expires_after(6s);
    late.async_wait([&](const boost::system::error_code&) {
      transport::Outgoing answer;
      auto registered = answer.root().initRegistered();
      registered.setJob(1);
      registered.setProcess(1);
      registered.setCluster("test");
      driver->send(answer);
    });
  };
  const auto listener = transport::Listener::abstract_unix(
      loop, options.head.unix_name, [&](transport::Socket socket) {
        transport::ServerOptions server;
        server.cluster = "test";
        server.refuse = [](const transport::Caller&) { return ""; };
        server.key = [&](const transport::Caller&) { return options.token; };
        handshake = transport::accept(
            std::move(socket), server,
            [&](transport::ConnectionPtr open, const transport::Accepted&) {
              driver = std::move(open);
              driver->hand_over({}, registers, [](const std::string&) {});
            },
            [](const transport::Denied&) {});
      });
  std::thread head([&] {
    const auto work = boost::asio::make_work_guard(loop);
    loop.run();
  });
  CHECK_NOTHROW(runtime::Driver(options));
  boost::asio::post(loop, [&] {
    if (driver) driver->close();
    loop.stop();
  });
  head.join();
}
