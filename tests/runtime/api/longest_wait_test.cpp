#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/detail/trainable/local_member.hpp>

#include "api/bounded.hpp"
#include "session/trainable/debugger.hpp"

#include "fake_gang.hpp"

using namespace troupe;
using namespace troupe::detail;
using namespace std::chrono_literals;

namespace {

constexpr auto kForEver = std::chrono::milliseconds::max();

}  // namespace

TEST_CASE("a wait is for a year at most, and not for less than nothing", "[api][wait]") {
  STATIC_REQUIRE(bounded(kForEver) == kLongestWait);
  STATIC_REQUIRE(bounded(kLongestWait) == kLongestWait);
  STATIC_REQUIRE(bounded(5s) == 5s);
  STATIC_REQUIRE(bounded(0ms) == 0ms);
  STATIC_REQUIRE(bounded(std::chrono::milliseconds::min()) == 0ms);
}

TEST_CASE("who waits for ever in a local rendezvous waits until the key is there", "[api][wait]") {
  LocalRendezvous rendezvous;
  auto value = std::async(std::launch::async, [&] { return rendezvous.get("late", kForEver); });
  CHECK(value.wait_for(50ms) == std::future_status::timeout);
  rendezvous.set("late", "it came");
  CHECK(value.get() == "it came");
}

TEST_CASE("a rank waits for ever for its debugger, until its gang ends", "[api][wait]") {
  const fake::GangOfThreads gang(std::make_shared<fake::GangTable>(), 0, 1);
  int looks = 0;
  const auto check = [&] {
    if (++looks == 2) throw std::domain_error("the gang has ended");
  };
  CHECK_THROWS_AS(
      wait_for_debugger(gang, {.debugger_rank = 0, .debugger_wait = kForEver}, "train", check),
      std::domain_error);
}
