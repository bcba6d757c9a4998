#include "transport/frame.hpp"
#include "rounds.hpp"

#include <malloc.h>

#include <algorithm>
#include <random>

#include "transport/harness.hpp"
#include "transport/samples.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// What a reader makes of bytes that arrive in pieces of the sizes that `piece` gives.
struct Reading {
  std::vector<std::string> bodies;
  std::string error, cut_off;
  bool operator==(const Reading&) const = default;
};

template <class Piece>
Reading read_in_pieces(std::string_view bytes, std::size_t limit, Piece piece) {
  FrameReader reader(limit);
  Reading result;
  for (;;) {
    while (const auto body = reader.next()) {
      REQUIRE(reinterpret_cast<std::uintptr_t>(body->data()) % 8 == 0);
      result.bodies.emplace_back(reinterpret_cast<const char*>(body->data()), body->size_bytes());
    }
    if (!reader.error().empty() || bytes.empty()) break;
    const auto space = reader.space();
    REQUIRE(!space.empty());
    const auto count = std::min({space.size(), bytes.size(), std::max<std::size_t>(1, piece())});
    std::copy_n(bytes.begin(), count, space.begin());
    reader.filled(count);
    bytes.remove_prefix(count);
  }
  result.error = reader.error();
  if (result.error.empty()) result.cut_off = reader.cut_off();
  return result;
}

Reading read_whole(std::string_view bytes, std::size_t limit = kMiB) {
  return read_in_pieces(bytes, limit, [] { return std::string::npos; });
}
Reading read_bytewise(std::string_view bytes, std::size_t limit = kMiB) {
  return read_in_pieces(bytes, limit, [] { return 1; });
}

std::string header(std::uint32_t bytes) {
  std::string text = "TRP1";
  for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(bytes >> shift);
  return text;
}

}  // namespace

TEST_CASE("frames are the same in whatever pieces they arrive", "[transport][frame]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::string stream;
  std::vector<std::string> sent;
  for (const std::size_t bytes :
       {8, 16, 65512, 65520, 65528, 65536, 65544, 8, 300'000, 24, 1 << 20, 40'000, 40'000, 8}) {
    std::string body(bytes, '\0');
    for (auto& c : body) c = static_cast<char>(random());
    stream += header(static_cast<std::uint32_t>(bytes)) + body;
    sent.push_back(std::move(body));
  }

  const auto whole = read_whole(stream);
  CHECK(whole.bodies == sent);
  CHECK(whole.error.empty());
  CHECK(whole.cut_off.empty());
  CHECK(read_bytewise(stream) == whole);
  for (const std::size_t most : {7, 1000, 70'000}) {
    CHECK(read_in_pieces(stream, kMiB, [&] { return random() % most + 1; }) == whole);
  }
}

TEST_CASE("what is no frame is refused with its first bytes, however it arrives",
          "[transport][frame]") {
  CHECK(read_whole("HTTP/1.1 400 Bad Request\r\nX: y").error ==
        "the peer does not speak Troupe: it sent 'HTTP/1.1 400 Bad Request'");
  CHECK(read_whole("TRP2\x08").error == "the peer does not speak Troupe: it sent 'TRP2\\x08'");
  CHECK(read_bytewise("TRX").error == "the peer does not speak Troupe: it sent 'TRX'");
  CHECK(read_whole(header(12)).error ==
        "bad frame: its length, 12, is not a positive multiple of 8 ('TRP1\\x0c\\x00\\x00\\x00')");
  CHECK_THAT(read_whole(header(0)).error, StartsWith("bad frame: its length, 0,"));
  CHECK_THAT(read_bytewise(header(kMiB + 8)).error,
             StartsWith("bad frame: it announces 1048584 bytes, the limit is 1048576"));
  CHECK_THAT(read_whole(header(0xfffffff8)).error,
             StartsWith("bad frame: it announces 4294967288 bytes"));
}

TEST_CASE("a stream that ends inside a frame says how far it came", "[transport][frame]") {
  CHECK(read_whole("TRP1\x08").cut_off == "in the middle of a frame's header ('TRP1\\x08')");
  CHECK(read_whole(header(16) + "12345678").cut_off ==
        "in the middle of a message (8 of 16 bytes had arrived)");
  CHECK(read_whole(header(800'000) + std::string(700'000, 'x')).cut_off ==
        "in the middle of a message (700000 of 800000 bytes had arrived)");
}

TEST_CASE("a limit that is raised between two frames holds for the second", "[transport][frame]") {
  const auto bytes = header(8) + "12345678" + header(80) + std::string(80, 'x');
  FrameReader reader(8);
  const auto space = reader.space();
  std::copy(bytes.begin(), bytes.end(), space.begin());
  reader.filled(bytes.size());
  REQUIRE(reader.next());
  reader.set_limit(80);
  const auto second = reader.next();
  REQUIRE(second);
  CHECK(second->size_bytes() == 80);
}

TEST_CASE("a large frame that is only announced takes no memory", "[transport][frame]") {
  std::vector<std::unique_ptr<FrameReader>> readers;
  const auto used = [] {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto before = used();
  for (int i = 0; i < 16; ++i) {
    auto& reader = readers.emplace_back(std::make_unique<FrameReader>(256 * kMiB));
    const auto bytes = header(256 * kMiB);
    std::copy(bytes.begin(), bytes.end(), reader->space().begin());
    reader->filled(bytes.size());
    CHECK(!reader->next());
    CHECK(reader->error().empty());
    CHECK(reader->space().size() <= kMiB);
  }
  CHECK(used() - before < 16 * kMiB);
}

TEST_CASE("the buffer is small until as much comes at once as it takes", "[transport][frame]") {
  const auto frame = header(32) + std::string(32, 'x');
  FrameReader reader(kMiB);
  const auto put = [&](std::size_t frames) {
    const auto space = reader.space();
    for (std::size_t i = 0; i < frames; ++i)
      std::ranges::copy(frame, space.begin() + i * frame.size());
    reader.filled(frames * frame.size());
    for (std::size_t i = 0; i < frames; ++i) REQUIRE(reader.next());
    REQUIRE_FALSE(reader.next());
  };
  for (int i = 0; i < 100; ++i) put(1);
  REQUIRE(reader.space().size() == FrameReader::kFirstBytes);
  put(FrameReader::kFirstBytes / frame.size());  // to the last byte
  CHECK(reader.space().size() == FrameReader::kBufferBytes);
}

// ---- through a connection -----------------------------------------------------------------------

TEST_CASE("garbage closes its connection and no other", "[transport][frame][connection]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Loop loop;
  auto [here, there] = socket_pair(loop, true);
  End good_here, good_there;
  good_here.start(std::move(here));
  good_there.start(std::move(there));

  for (int round = 0; round < 200; ++round) {
    RawPair pair(loop);
    End victim;
    victim.start(std::move(pair.socket));
    std::string garbage(1 + random() % 2000, '\0');
    for (auto& c : garbage) c = static_cast<char>(random());
    if (round % 2 != 0) garbage = header(static_cast<std::uint32_t>(random() % 64 * 8)) + garbage;
    pair.write(garbage);
    ::shutdown(pair.raw.get(), SHUT_WR);
    REQUIRE(loop.until([&] { return !victim.closed.empty(); }));
    CHECK(victim.closed.size() == 1);
  }

  good_here.connection->send(text_message("still here"));
  REQUIRE(loop.until([&] { return good_there.texts.size() == 1; }));
}

TEST_CASE("bytes that arrive one by one make the same messages as at once",
          "[transport][frame][connection]") {
  Loop loop;
  RawPair pair(loop);
  End end;
  end.start(std::move(pair.socket));
  for (const char byte : frame(text_message("one")) + frame(text_message("two"))) {
    pair.write({&byte, 1});
    loop.until([] { return false; }, 1ms);
  }
  CHECK(end.texts == std::vector<std::string>{"one", "two"});
  pair.write(frame(text_message("three")).substr(0, 20));
  { const OwnedFd gone = std::move(pair.raw); }

  REQUIRE(loop.until([&] { return !end.closed.empty(); }));
  CHECK(end.closed == std::vector<std::string>{"the peer closed the connection in the middle of a "
                                               "message (12 of 40 bytes had arrived)"});
}

TEST_CASE("a valid message of every kind, damaged at random, harms nobody",
          "[transport][frame][fuzz]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto samples = sample_frames();
  REQUIRE(samples.size() == 75);  // as many as the union has members
  std::size_t survived = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = samples[random() % samples.size()];
    for (auto flips = random() % 4; flips > 0; --flips) {
      auto& byte = bytes[kHeaderBytes + random() % (bytes.size() - kHeaderBytes)];
      byte = random() % 2 != 0 ? static_cast<char>(random())
                               : static_cast<char>(byte ^ (1 << random() % 8));
    }
    survived += visit_frames(bytes) ? 1 : 0;
  }
  // Some damage breaks a message and some only changes a value: else this test would look at
  // nothing.
  CHECK(survived > 2'000);
  CHECK(survived < 20'000);
}

TEST_CASE("pointers that all lead to one value do not make it cost much more",
          "[transport][frame][fuzz]") {
  // 1000 payloads that share one piece of 800 KiB would be 800 MiB to a reader that copies each.
  Loop loop;
  Outgoing message(kMiB);
  auto args = message.root().initCall().initArgs(1000);
  args[0].initData(800 << 10);
  const auto body = message.body();
  std::vector<capnp::word> words(body.size() / 8);
  std::memcpy(words.data(), body.data(), body.size());
  // The list's elements have two pointers each; every first one is made to lead to the one value of
  // the first.
  auto* raw = reinterpret_cast<std::int64_t*>(words.data());
  const auto target = std::find_if(raw, raw + words.size(), [&](std::int64_t word) {
    return (word & 3) == 1 && (static_cast<std::uint64_t>(word) >> 35) == (800u << 10) &&
           ((word >> 32) & 7) == 2;
  });
  REQUIRE(target != raw + words.size());
  for (std::int64_t i = 1; i < 1000; ++i) target[2 * i] = *target - (2 * i << 2);

  std::size_t read = 0;
  std::string closed;
  auto bytes = header(static_cast<std::uint32_t>(body.size())) +
               std::string(reinterpret_cast<const char*>(words.data()), body.size());
  RawPair pair(loop);
  auto victim = Connection::make(std::move(pair.socket));
  victim->start(
      [&](wire::Message::Reader got) {
        for (const auto arg : got.getCall().getArgs()) read += arg.getData().size();
      },
      [&](const std::string& why) { closed = why; });
  while (!bytes.empty()) {
    const auto count =
        ::send(pair.raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) bytes.erase(0, static_cast<std::size_t>(count));
    loop.until([] { return false; }, 1ms);
  }

  REQUIRE(loop.until([&] { return !closed.empty(); }));
  CHECK_THAT(closed, StartsWith("the peer sent a malformed message: ") && Contains("limit"));
  CHECK(read < 20 * kMiB);
}
