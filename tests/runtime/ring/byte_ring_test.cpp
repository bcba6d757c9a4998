#include "ring/byte_ring.hpp"
#include "rounds.hpp"

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe::ring;

namespace {

/// Both ends of one ring in one thread.
struct Ring {
  explicit Ring(std::size_t bytes) : words(bytes / 8) {}
  std::vector<std::uint64_t> words;  // aligned as a mapping is
  Control control;
  std::span<std::byte> memory() { return std::as_writable_bytes(std::span(words)); }
  Producer producer{control, memory()};
  Consumer consumer{control, memory()};

  bool push(const std::string& text) {
    auto* at = producer.reserve(text.size());
    if (!at) return false;
    std::memcpy(at, text.data(), text.size());
    producer.commit();
    return true;
  }
  std::string pop() {
    const auto record = consumer.front();
    if (!record) return "none";
    std::string text(reinterpret_cast<const char*>(record->data()), record->size());
    consumer.pop();
    return text;
  }
};

std::string text_of(std::size_t bytes, std::uint64_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(seed * 31 + i);
  return text;
}

}  // namespace

TEST_CASE("records of any size come out of a ring as they went in, in order", "[runtime][ring]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Ring ring(4096);
  std::deque<std::string> inside;
  for (int step = 0; step < 100'000; ++step) {
    if (random() % 2 == 0) {
      const auto text =
          text_of(random() % (random() % 8 == 0 ? ring.producer.largest() + 1 : 100), random());
      if (ring.push(text)) inside.push_back(text);
    } else if (!inside.empty()) {
      REQUIRE(ring.pop() == inside.front());
      inside.pop_front();
    } else {
      REQUIRE(ring.pop() == "none");
      REQUIRE(ring.consumer.empty());
    }
  }
  CHECK_FALSE(ring.consumer.broken());
}

TEST_CASE("a full ring takes no more until something is read", "[runtime][ring]") {
  Ring ring(1024);
  int fitted = 0;
  while (ring.push(text_of(56, 1))) ++fitted;
  CHECK(fitted == 1024 / 64);
  CHECK_FALSE(ring.push(""));
  CHECK(ring.pop() == text_of(56, 1));
  CHECK(ring.push(text_of(56, 2)));
  CHECK_FALSE(ring.push(text_of(56, 3)));
}

TEST_CASE("the largest record fits at every place of an empty ring", "[runtime][ring]") {
  Ring ring(1024);
  const auto large = text_of(ring.producer.largest(), 9);
  for (int step = 0; step < 500; ++step) {
    REQUIRE(ring.push(large));
    REQUIRE(ring.pop() == large);
    REQUIRE(ring.push("x"));
    REQUIRE(ring.pop() == "x");
  }
  CHECK_FALSE(ring.push(text_of(ring.producer.largest() + 1, 9)));
}

TEST_CASE("a producer learns what its consumer sleeps on, once", "[runtime][ring]") {
  Ring ring(1024);
  CHECK(ring.producer.claim_wake() == Watch::Active);
  ring.consumer.set_watch(Watch::Asleep);
  CHECK(ring.producer.seen_watch() == Watch::Asleep);
  CHECK(ring.producer.claim_wake() == Watch::Asleep);
  CHECK(ring.producer.claim_wake() == Watch::Active);
}

TEST_CASE(
    "a ring that the other side has damaged at random is read within its memory, or found broken",
    "[runtime][ring]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int broken = 0;
  for (int round = 0; round < 20'000; ++round) {
    Ring ring(1024);
    for (int i = 0; i < 5; ++i) ring.push(text_of(random() % 120, random()));
    auto memory = ring.memory();
    for (int i = 0; i < 3; ++i) memory[random() % memory.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) ring.control.tail.store(random() % 8 == 0 ? random() : random() % 2048);
    for (int reads = 0; reads < 1000; ++reads) {
      const auto record = ring.consumer.front();
      if (!record) break;
      REQUIRE(record->data() >= memory.data());
      REQUIRE(record->data() + record->size() <= memory.data() + memory.size());
      ring.consumer.pop();
    }
    broken += ring.consumer.broken() ? 1 : 0;
  }
  CHECK(broken > 100);
}
