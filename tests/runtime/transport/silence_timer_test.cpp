#include "transport/silence_timer.hpp"

#include <thread>

#include <boost/asio/post.hpp>

#include "transport/harness.hpp"

using namespace troupe::transport;
using namespace troupe::transport::test;

namespace {

struct Timed {
  Loop loop;
  SilenceTimer timer{loop.context.get_executor()};
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  int over = 0;

  void start(std::chrono::milliseconds time) {
    timer.start(time, [this] { ++over; });
  }
  std::chrono::steady_clock::duration passed() const {
    return std::chrono::steady_clock::now() - begun;
  }
  void stand_still(std::chrono::milliseconds time) {
    boost::asio::post(loop.context, [time] { std::this_thread::sleep_for(time); });
  }
};

}  // namespace

TEST_CASE("a deadline of silence is over once, after its time", "[transport][silence]") {
  Timed timed;
  timed.start(250ms);
  REQUIRE(timed.loop.until([&] { return timed.over > 0; }));
  CHECK(timed.passed() >= 250ms);
  timed.loop.until([] { return false; }, 300ms);
  CHECK(timed.over == 1);
}

TEST_CASE("what a process stands still does not count as the silence of others",
          "[transport][silence]") {
  Timed timed;
  timed.start(400ms);
  timed.stand_still(800ms);
  REQUIRE(timed.loop.until([&] { return timed.over > 0; }));
  // All of it but the slice in which it began to stand still.
  CHECK(timed.passed() >= 800ms + 400ms - SilenceTimer::kSlice);
}

TEST_CASE("what came while a process stood still is read before a deadline of silence is over",
          "[transport][silence]") {
  Timed timed;
  RawPair pair(timed.loop);
  timed.start(50ms);
  pair.write("x");
  timed.stand_still(500ms);
  // In two steps, as messages lie one behind the other.
  int over_before = -1;
  pair.socket.async_wait(Socket::wait_read, [&](auto) {
    pair.socket.async_wait(Socket::wait_read, [&](auto) { over_before = timed.over; });
  });
  REQUIRE(timed.loop.until([&] { return timed.over > 0; }));
  CHECK(over_before == 0);
}

TEST_CASE("a deadline of silence that is cancelled or begun anew is not over as it would have been",
          "[transport][silence]") {
  Timed timed;
  timed.start(50ms);
  timed.timer.cancel();
  timed.loop.until([] { return false; }, 200ms);
  CHECK(timed.over == 0);
  timed.start(100ms);
  int second = 0;
  timed.timer.start(150ms, [&] { ++second; });
  REQUIRE(timed.loop.until([&] { return second > 0; }));
  CHECK(timed.over == 0);
}

TEST_CASE("a deadline of silence keeps nobody who went with its loop", "[transport][silence]") {
  const auto held = std::make_shared<int>();
  {
    Timed timed;
    timed.timer.start(1h, [held] {});
  }
  CHECK(held.use_count() == 1);
}
