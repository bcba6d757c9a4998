#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "child_process.hpp"
#include "guard.hpp"
#include "ring/bell.hpp"
#include "ring/segment.hpp"

using namespace troupe::ring;
using Clock = std::chrono::steady_clock;
using troupe::test::ChildProcess;
using troupe::test::kGuard;

namespace {

/// Sleeps on the bell until the ring has something, as a user's thread does. False: nobody woke it.
bool wait_for(Consumer& consumer, Bell& bell) {
  for (const auto start = Clock::now(); consumer.empty();) {
    const Bell::Sleeper sleeper(bell);
    const auto seen = bell.rings();
    consumer.set_watch(Watch::Asleep);
    if (!consumer.empty()) return true;
    const timespec guard{kGuard.count(), 0};
    bell.sleep(seen, &guard);
    if (Clock::now() - start >= kGuard) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("two processes pass a million numbers through a ring, and nobody sleeps for ever",
          "[runtime][ring]") {
  auto segment = *Segment::create();
  auto bell = Bell::create();
  constexpr std::uint64_t kCount = 1'000'000;
  ChildProcess reader([&] {
    Consumer consumer(segment.calls(), segment.call_memory());
    for (std::uint64_t expected = 0; expected < kCount;) {
      if (!wait_for(consumer, *bell)) return 2;
      while (const auto record = consumer.front()) {
        std::uint64_t number = 0;
        std::memcpy(&number, record->data(), sizeof number);
        if (number != expected || record->size() != sizeof number + number % 40) return 1;
        ++expected;
        consumer.pop();
      }
    }
    return 0;
  });
  Producer producer(segment.calls(), segment.call_memory());
  for (std::uint64_t number = 0; number < kCount; ++number) {
    std::byte* at = nullptr;
    while (!(at = producer.reserve(sizeof number + number % 40))) ::usleep(50);
    std::memcpy(at, &number, sizeof number);
    producer.commit();
    if (producer.claim_wake() == Watch::Asleep) bell->ring();
    if (number % 50'000 == 0) ::usleep(200);  // now and then the reader falls asleep
  }
  CHECK(reader.exit_code() == 0);
}

TEST_CASE("a call and its answer wake two sleeping processes in turn", "[runtime][ring]") {
  auto segment = *Segment::create();
  auto here = Bell::create();
  auto there = Bell::create();
  ChildProcess callee([&] {
    Consumer calls(segment.calls(), segment.call_memory());
    Producer replies(segment.replies(), segment.reply_memory());
    for (int i = 0; i < 5'000; ++i) {
      if (!wait_for(calls, *there)) return 3;
      if (!calls.front()) return 1;
      calls.pop();
      if (!replies.reserve(8)) return 2;
      replies.commit();
      if (replies.claim_wake() == Watch::Asleep) here->ring();
    }
    return 0;
  });
  Producer calls(segment.calls(), segment.call_memory());
  Consumer replies(segment.replies(), segment.reply_memory());
  for (int i = 0; i < 5'000; ++i) {
    REQUIRE(calls.reserve(8));
    calls.commit();
    if (calls.claim_wake() == Watch::Asleep) there->ring();
    REQUIRE(wait_for(replies, *here));
    REQUIRE(replies.front());
    replies.pop();
  }
  CHECK(callee.exit_code() == 0);
}

TEST_CASE("memory that is no ring's is refused with what is wrong", "[runtime][ring]") {
  const auto why = [](const UniqueFd& descriptor) {
    auto adopted = Segment::adopt(descriptor);
    auto* text = std::get_if<std::string>(&adopted);
    return text ? *text : std::string();
  };
  auto made = *Segment::create();
  CHECK(why(made.descriptor()).empty());

  const UniqueFd small = sealed_memory("small", 4096);
  CHECK_THAT(why(small), Catch::Matchers::Contains("4096 bytes"));
  const UniqueFd zeros = sealed_memory("zeros", 4096 + 2 * Segment::kRingBytes);
  CHECK(why(zeros) == "it holds no rings");
  const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.get(), 4096 + 2 * Segment::kRingBytes) == 0);
  CHECK(why(unsealed) == "it is not sealed to its size");
  CHECK_FALSE(Bell::adopt(small) == nullptr);
  CHECK(Bell::adopt(zeros) == nullptr);
  CHECK(Bell::adopt(UniqueFd()) == nullptr);
}

TEST_CASE("a sealed ring cannot be cut off under its reader", "[runtime][ring]") {
  auto made = *Segment::create();
  CHECK(::ftruncate(made.descriptor().get(), 0) == -1);
  CHECK(::ftruncate(made.descriptor().get(), 1 << 30) == -1);
}
