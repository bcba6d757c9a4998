#include "transport/byte_stream.hpp"

#include <optional>

#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;

namespace {

using Outcome = ByteStream::Outcome;

ByteStream::Result write(ByteStream& stream, std::string_view text) {
  iovec piece{const_cast<char*>(text.data()), text.size()};
  return stream.write({&piece, 1}, {});
}

struct Streams {
  explicit Streams(bool tcp) {
    auto [one, other] = socket_pair(loop, tcp);
    here.emplace(std::move(one), [] {});
    there.emplace(std::move(other), [] {});
  }
  ByteStream::Result read_there(std::size_t at_most = 64) {
    std::vector<os::UniqueFd> descriptors;
    std::string space(at_most, ' ');
    const auto result = there->read(space, descriptors);
    read.append(space, 0, result.bytes);
    return result;
  }

  Loop loop;
  std::optional<ByteStream> here;
  std::optional<ByteStream> there;
  std::string read;
};

}  // namespace

TEST_CASE("a stream tells apart bytes, nothing yet, the end and a broken end",
          "[transport][byte_stream]") {
  Streams streams(GENERATE(true, false));
  CHECK(streams.read_there().outcome == Outcome::WouldBlock);

  bool ready = false;
  streams.there->wait_readable([&] { ready = true; });
  const auto written = write(*streams.here, "words");
  CHECK(written.outcome == Outcome::Moved);
  CHECK(written.bytes == 5);
  REQUIRE(streams.loop.until([&] { return ready; }));
  CHECK(streams.read_there(3).bytes == 3);
  CHECK(streams.read_there().bytes == 2);
  CHECK(streams.read == "words");

  ready = false;
  streams.there->wait_readable([&] { ready = true; });
  streams.here->shut_down_writing();
  REQUIRE(streams.loop.until([&] { return ready; }));
  const auto end = streams.read_there();
  CHECK(end.outcome == Outcome::Ended);
  CHECK(end.closed_by_peer());
  // The other direction goes on.
  CHECK(write(*streams.there, "still").outcome == Outcome::Moved);

  streams.here->close();
  ByteStream::Result broken;
  REQUIRE(streams.loop.until([&] {
    broken = write(*streams.there, "too late");
    return broken.outcome == Outcome::Broken;
  }));
  CHECK(broken.closed_by_peer());
  CHECK_FALSE(broken.error_text().empty());
}

TEST_CASE("a full stream says so, and when there is room again", "[transport][byte_stream]") {
  Streams streams(GENERATE(true, false));
  const std::string block(1 << 16, 'x');
  std::size_t written = 0;
  ByteStream::Result last;
  while ((last = write(*streams.here, block)).outcome == Outcome::Moved) written += last.bytes;
  REQUIRE(last.outcome == Outcome::WouldBlock);
  int calls = 0;
  streams.here->wait_writable([&] { ++calls; });
  streams.here->wait_writable([&] { calls += 100; });  // one wait at a time: this one is not noted
  CHECK(streams.here->waits_to_write());
  REQUIRE(streams.loop.until([&] {
    streams.read_there(1 << 16);
    return calls > 0;
  }));
  CHECK(calls == 1);
  CHECK_FALSE(streams.here->waits_to_write());
  REQUIRE(streams.loop.until([&] {
    streams.read_there(1 << 16);
    return streams.read.size() == written;
  }));
}

TEST_CASE("a stream that goes away calls nobody, and a released one lives on",
          "[transport][byte_stream]") {
  Streams streams(false);
  bool called = false;
  streams.here->wait_readable([&] { called = true; });
  const auto descriptor = streams.here->release();
  streams.here.reset();
  CHECK(descriptor.get() >= 0);
  REQUIRE(::write(descriptor.get(), "on", 2) == 2);
  REQUIRE(streams.loop.until([&] { return streams.read_there().bytes == 2; }));
  CHECK(write(*streams.there, "back").outcome == Outcome::Moved);
  streams.loop.until([&] { return called; }, std::chrono::milliseconds(50));
  CHECK_FALSE(called);
}
