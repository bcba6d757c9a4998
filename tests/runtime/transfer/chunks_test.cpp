#include <cstring>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "harness.hpp"
#include "rounds.hpp"
#include "transfer/chunks.hpp"

using namespace troupe;
using namespace troupe::transfer;
using namespace troupe::transfer::test;
using Result = ChunkReader::Result;

namespace {

std::vector<std::byte> sample(std::uint64_t bytes) {
  std::vector<std::byte> value(bytes);
  fill(value, {ProcessId(3), bytes});
  return value;
}

std::string chunk(const std::vector<std::byte>& value, std::uint64_t offset, std::uint64_t bytes) {
  const auto part = std::span(value).subspan(offset, bytes);
  const auto header = chunk_header(offset, part);
  return std::string(header.data(), header.size()) +
         std::string(reinterpret_cast<const char*>(part.data()), bytes);
}

std::string wait_message() {
  transport::Outgoing message;
  message.root().setTransferWait();
  std::vector<char> bytes;
  message.append_to(bytes);
  return {bytes.begin(), bytes.end()};
}

/// Feeds the bytes in pieces of random size; stops where the reader has enough of them.
Result feed(ChunkReader& reader, std::string_view bytes, std::mt19937& random) {
  auto last = Result::More;
  while (!bytes.empty() && !reader.is_complete()) {
    const auto space = reader.space();
    REQUIRE_FALSE(space.empty());
    const auto most = std::min(space.size(), bytes.size());
    const auto count = random() % 4 == 0 ? most : 1 + random() % most;
    std::memcpy(space.data(), bytes.data(), count);
    bytes.remove_prefix(count);
    last = reader.filled(count);
    if (last == Result::Garbage || last == Result::Damaged) return last;
  }
  return last;
}

}  // namespace

TEST_CASE("chunks and messages between them arrive however the stream is cut",
          "[transfer][chunks]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const std::uint64_t bytes : {1u, 7u, 4096u, 70'000u}) {
    const auto value = sample(bytes);
    std::vector<std::byte> into(bytes);
    std::string stream;
    for (std::uint64_t at = 0; at < bytes;) {
      const auto part = std::min<std::uint64_t>(bytes - at, 1 + random() % 20'000);
      if (random() % 2 == 0) stream += wait_message();
      stream += chunk(value, at, part);
      at += part;
    }
    ChunkReader reader(into, 0);
    CHECK(feed(reader, stream, random) == Result::Chunk);
    CHECK(reader.is_complete());
    CHECK(reader.verified() == bytes);
    CHECK(into == value);
  }
}

TEST_CASE("an object without bytes is one chunk without bytes", "[transfer][chunks]") {
  std::mt19937 random(1);
  std::vector<std::byte> nothing;
  ChunkReader reader(nothing, 0);
  CHECK_FALSE(reader.is_complete());
  CHECK(feed(reader, chunk({}, 0, 0), random) == Result::Chunk);
  CHECK(reader.is_complete());
}

TEST_CASE("a chunk that was changed does not count, and those before it do", "[transfer][chunks]") {
  std::mt19937 random(1);
  const auto value = sample(30'000);
  std::vector<std::byte> into(value.size());
  auto stream = chunk(value, 0, 10'000) + chunk(value, 10'000, 20'000);
  stream[2 * kChunkHeaderBytes + 25'000] ^= 1;
  ChunkReader reader(into, 0);
  CHECK(feed(reader, stream, random) == Result::Damaged);
  CHECK(reader.verified() == 10'000);
  CHECK_THAT(reader.error(), Catch::Matchers::StartsWith("the XXH3 of the 19.5 KiB at 10000 is"));
}

TEST_CASE("a chunk that does not follow, or is too long, is not taken", "[transfer][chunks]") {
  std::mt19937 random(1);
  const auto value = sample(50'000);
  const auto check = [&](std::uint64_t has, const std::string& stream) {
    std::vector<std::byte> into(40'000);
    ChunkReader reader(into, has);
    CHECK(feed(reader, stream, random) == Result::Garbage);
    CHECK(reader.verified() == has);
  };
  check(0, chunk(value, 1, 1));
  check(100, chunk(value, 0, 200));
  check(0, chunk(value, 0, 40'001));
  check(0, chunk(value, 0, 0));
  check(0, "GET / HTTP/1.1\r\n\r\n");
  check(0, std::string("TRP1\xf8\xff\xff\xff", 8));
  check(0, std::string("TRP1\x00\x00\x00\x00", 8));
  check(0, std::string("TRPD\xff\xff\xff\xff", 8) + std::string(16, '\0'));
}

TEST_CASE("a stream that was damaged at random harms nobody", "[transfer][chunks][fuzz]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto value = sample(5'000);
  const auto stream =
      wait_message() + chunk(value, 0, 2'000) + wait_message() + chunk(value, 2'000, 3'000);
  int whole = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = stream;
    for (auto flips = random() % 3; flips > 0; --flips) {
      const auto at = random() % 2 == 0 ? random() % 48 : random() % bytes.size();
      bytes[at] ^= static_cast<char>(1 << random() % 8);
    }
    std::vector<std::byte> into(value.size());
    ChunkReader reader(into, 0);
    feed(reader, bytes, random);
    if (!reader.is_complete()) continue;
    CHECK(into == value);
    ++whole;
  }
  CHECK(whole > 1'000);
}
