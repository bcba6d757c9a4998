#include "run/interrupt.hpp"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/tune/results.hpp>

namespace interrupt_test {

using namespace troupe::tune;

namespace {

volatile std::sig_atomic_t own_handler_ran = 0;
void own_handler(int) { own_handler_ran = 1; }

}  // namespace

TEST_CASE("a signal is noted while a watch lives, and the handler before it comes back",
          "[tune][interrupt]") {
  const auto before = std::signal(SIGTERM, own_handler);
  {
    InterruptWatch watch;
    CHECK_FALSE(watch.noted());
    CHECK_FALSE(watch.signal());
    std::raise(SIGTERM);
    CHECK(watch.noted() == "ended by the user (SIGTERM)");
    CHECK(watch.signal() == SIGTERM);
    CHECK_FALSE(InterruptWatch().noted());
  }
  CHECK(own_handler_ran == 0);
  std::raise(SIGTERM);
  CHECK(own_handler_ran == 1);
  std::signal(SIGTERM, before);
  CHECK_FALSE(InterruptWatch().noted());
  CHECK_THROWS_WITH(refuse_after_interrupt(),
                    Catch::Contains("since SIGTERM came during a search"));
  CHECK_THROWS_AS(refuse_after_interrupt(), Interrupted);  // each later search is refused
  clear_interrupt();
  CHECK_NOTHROW(refuse_after_interrupt());
}

TEST_CASE("a second signal ends the program", "[tune][interrupt]") {
  const auto child = fork();
  if (child == 0) {
    InterruptWatch watch;
    std::raise(SIGINT);
    if (watch.noted() != "ended by the user (SIGINT)") _exit(1);
    usleep(100'000);  // sooner it would be an echo of the first
    std::raise(SIGINT);
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("a signal that comes twice at once, as timeout(1) sends it, is one",
          "[tune][interrupt]") {
  int status = -1;
  // A machine that stands still between the two makes them two: then once more.
  for (int tries = 0; tries < 100 && status != 0; ++tries) {
    const auto child = fork();
    if (child == 0) {
      InterruptWatch watch;
      std::raise(SIGTERM);
      std::raise(SIGTERM);
      _exit(watch.noted() == "ended by the user (SIGTERM)" ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
  }
  CHECK(status == 0);
}

TEST_CASE("another signal behind the first is no echo of it", "[tune][interrupt]") {
  const auto child = fork();
  if (child == 0) {
    InterruptWatch watch;
    std::raise(SIGTERM);
    std::raise(SIGINT);
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGINT));
}

}  // namespace interrupt_test
