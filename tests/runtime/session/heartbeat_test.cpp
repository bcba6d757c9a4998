#include "session/heartbeat.hpp"

#include <chrono>
#include <thread>

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"

using namespace std::chrono_literals;
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
