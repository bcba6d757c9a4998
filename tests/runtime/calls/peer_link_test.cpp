// Two links in one process, whose connections lead through relays that cut them at any byte.
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "calls/peers/peer_link.hpp"
#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::runtime;
using namespace std::chrono_literals;
using transport::Connection;
using transport::ConnectionPtr;
using transport::test::Loop;
using transport::test::text_message;

namespace {

constexpr ProcessId kFirst = 1_process;
constexpr ProcessId kSecond = 2_process;

/// Carries bytes between two sockets until so many have passed; then both ends are reset.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(transport::Socket left, transport::Socket right, std::size_t bytes)
      : ends_{std::move(left), std::move(right)}, left_(bytes) {}
  void start() {
    carry(0);
    carry(1);
  }

 private:
  void carry(std::size_t from) {
    ends_[from].async_wait(transport::Socket::wait_read,
                           [self = shared_from_this(), from](const auto& error) {
                             if (!error && self->take(from)) self->give(1 - from);
                           });
  }
  bool take(std::size_t from) {
    auto& piece = pieces_[1 - from];
    piece.resize(std::min(std::size_t{16384}, left_));
    const auto got = ::recv(ends_[from].native_handle(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got <= 0) return cut();
    piece.resize(static_cast<std::size_t>(got));
    left_ -= piece.size();
    return true;
  }
  /// Then the next bytes are carried there.
  void give(std::size_t to) {
    ends_[to].async_wait(transport::Socket::wait_write,
                         [self = shared_from_this(), to](const auto& error) {
                           if (error) return;
                           auto& piece = self->pieces_[to];
                           const auto sent = ::send(self->ends_[to].native_handle(), piece.data(),
                                                    piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
                           if (sent < 0 && errno != EAGAIN) return (void)self->cut();
                           piece.erase(piece.begin(), piece.begin() + std::max<ssize_t>(sent, 0));
                           if (!piece.empty()) return self->give(to);
                           if (self->left_ == 0) return (void)self->cut();
                           self->carry(1 - to);
                         });
  }
  bool cut() {
    boost::system::error_code ignored;
    for (auto& end : ends_) end.close(ignored);
    return false;
  }

  std::array<transport::Socket, 2> ends_;
  std::array<std::vector<char>, 2> pieces_;  // on their way to that end
  std::size_t left_;
};

/// A link, and what was delivered and told.
struct Side {
  Side(Loop& loop, ProcessId other,
       std::function<void(const PeerLink::Opened&, const PeerLink::Denied&)> dial)
      : callbacks{
            .loop = loop.context,
            .dial = [dial = std::move(dial)](
                        const AddressPtr&, const PeerLink::Opened& opened,
                        const PeerLink::Denied& denied) { dial(opened, denied); },
            .deliver =
                [this](ProcessId, wire::Message::Reader message) {
                  arrived.push_back(message.isShutdown() ? std::string(message.getShutdown())
                                                         : "skip");
                },
            .on_opening = [](ProcessId, const ConnectionPtr&, wire::Message::Reader) {},
            .on_opened = [](ProcessId, const ConnectionPtr&) {},
            .on_closed = [](ProcessId, const ConnectionPtr&) {},
            .on_broken = [this](ProcessId, const std::string&) { ++broken; },
            .on_unreachable = [this](ProcessId, const std::string&) { ++unreachable; },
            .on_stuck =
                [this](ProcessId, const std::string&) {
                  ++stuck;
                  link->give_up_first({.message = "it does not get through"});
                },
            .on_replies_arrived = [this](ProcessId,
                                         std::uint64_t reply) { replies_arrived.push_back(reply); },
            .on_owed =
                [this] { boost::asio::post(callbacks.loop, [this] { link->acknowledge(); }); },
            .longest_pause = 50ms},
        link(std::make_shared<PeerLink>(other, callbacks)) {}
  void send(std::string text, std::uint64_t request = 0, std::uint64_t reply = 0) {
    link->send(text_message(text), request, reply);
    sent.push_back(std::move(text));
  }

  std::vector<std::string> sent;
  std::vector<std::string> arrived;
  int broken = 0;
  int unreachable = 0;
  int stuck = 0;
  std::vector<std::uint64_t> replies_arrived;
  PeerLink::Callbacks callbacks;
  std::shared_ptr<PeerLink> link;
};

/// Two processes, each of which can connect to the other one.
struct Pair {
  Loop loop;
  std::mt19937 random;
  std::function<std::size_t()> bytes_of_next_connection;
  int connections = 0;
  Side first;
  Side second;

  Pair(unsigned seed, std::function<std::size_t(std::mt19937&)> bytes)
      : random(seed),
        bytes_of_next_connection([this, bytes = std::move(bytes)] { return bytes(random); }),
        first(loop, kSecond,
              [this](const auto& opened, const auto& denied) { connect(opened, denied, second); }),
        second(loop, kFirst,
               [this](const auto& opened, const auto& denied) { connect(opened, denied, first); }) {
  }

  void connect(const PeerLink::Opened& opened, const PeerLink::Denied& denied, Side& other) {
    const auto bytes = bytes_of_next_connection();
    boost::asio::post(loop.context, [this, opened, denied, bytes, &other] {
      if (bytes == 0) return denied("nobody listens there");
      ++connections;
      auto near = transport::test::socket_pair(loop, false);
      auto far = transport::test::socket_pair(loop, false);
      std::make_shared<Relay>(std::move(near.second), std::move(far.second), bytes)->start();
      opened(start(std::move(near.first)));
      other.link->adopt(start(std::move(far.first)));
    });
  }
  static ConnectionPtr start(transport::Socket socket) {
    auto connection = Connection::make(std::move(socket));
    connection->start(nullptr, nullptr);
    return connection;
  }
  static AddressPtr somewhere() { return std::make_shared<const Address>(); }
};

std::string random_text(std::mt19937& random) {
  const std::size_t size = random() % 50 == 0 ? random() % 40'000 : random() % 60;
  return std::string(size, static_cast<char>('a' + random() % 26));
}

}  // namespace

TEST_CASE(
    "messages of both sides arrive once and in order through connections that are cut at any byte",
    "[runtime][calls][link][property]") {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed,
              [](std::mt19937& random) { return random() % 10 == 0 ? 0 : 1 + random() % 250'000; });
    pair.first.link->reach(Pair::somewhere());
    // Both connect, also at the same time.
    if (seed % 2 == 0) pair.second.link->reach(Pair::somewhere());
    for (int i = 0; i < 900; ++i) {
      pair.first.send(random_text(pair.random));
      if (i % 2 == 0) pair.second.send(random_text(pair.random));
      if (i % 20 == 0) pair.loop.until([] { return false; }, 5ms);
    }
    CHECK(pair.loop.until([&] {
      return pair.first.arrived.size() >= pair.second.sent.size() &&
             pair.second.arrived.size() >= pair.first.sent.size();
    }));
    CHECK(pair.connections > 3);
    const bool same =
        pair.second.arrived == pair.first.sent && pair.first.arrived == pair.second.sent;
    CHECK(same);
    CHECK(pair.loop.until(
        [&] { return pair.first.link->kept_bytes() + pair.second.link->kept_bytes() == 0; }));
    CHECK(pair.first.stuck + pair.second.stuck == 0);
  }
}

TEST_CASE("a side that cannot connect keeps what it has to say until the other one has connected",
          "[runtime][calls][link]") {
  bool reachable = true;
  Pair pair(1, [&](std::mt19937&) { return reachable ? std::size_t{2000} : 0; });
  pair.first.link->reach(Pair::somewhere());
  pair.first.send("a question", 1);
  REQUIRE(pair.loop.until([&] { return !pair.second.arrived.empty(); }));
  reachable = false;
  pair.first.send(std::string(5000, 'x'));
  REQUIRE(pair.loop.until([&] { return pair.second.broken > 0; }));
  pair.second.send("the answer");
  CHECK(pair.loop.until([&] { return pair.first.broken > 2; }));
  CHECK(pair.first.arrived.empty());
  pair.bytes_of_next_connection = [] { return std::size_t{1} << 20; };
  CHECK(pair.loop.until(
      [&] { return !pair.first.arrived.empty() && pair.second.arrived.size() == 2; }));
  CHECK(pair.first.arrived == pair.second.sent);
}

TEST_CASE("a message that no connection carries to its end is given up after some of them",
          "[runtime][calls][link]") {
  Pair pair(1, [](std::mt19937&) { return std::size_t{100'000}; });
  pair.first.link->reach(Pair::somewhere());
  pair.first.send("before");
  REQUIRE(pair.loop.until([&] { return pair.first.link->kept_bytes() == 0; }));
  pair.first.send(std::string(300'000, 'x'));
  pair.first.send("behind");
  CHECK(pair.loop.until([&] { return pair.second.arrived.size() == 3; }));
  CHECK(pair.second.arrived == std::vector<std::string>{"before", "skip", "behind"});
  CHECK(pair.first.stuck == 1);
}

TEST_CASE("whoever sends replies is told which have arrived, whatever connections are cut",
          "[runtime][calls][link]") {
  Pair pair(1, [](std::mt19937& random) { return 1 + random() % 20'000; });
  pair.first.link->reach(Pair::somewhere());
  for (std::uint64_t i = 1; i <= 300; ++i)
    pair.first.send(std::string(i, 'x'), 0, i % 3 == 0 ? i : 0);
  CHECK(pair.loop.until([&] {
    return !pair.first.replies_arrived.empty() && pair.first.replies_arrived.back() == 300;
  }));
  CHECK(std::ranges::adjacent_find(pair.first.replies_arrived, std::greater_equal<>()) ==
        pair.first.replies_arrived.end());
  CHECK(pair.second.arrived.size() == 300);
}

TEST_CASE("who cannot be reached for long is told of again and again, and what was sent is kept",
          "[runtime][calls][link]") {
  Pair pair(1, [](std::mt19937&) { return std::size_t{0}; });
  pair.first.callbacks.patience = 100ms;
  pair.first.send("a borrow");
  pair.first.send("a request", 1);
  pair.first.link->reach(Pair::somewhere());
  REQUIRE(pair.loop.until([&] { return pair.first.unreachable == 1; }));
  CHECK(pair.first.link->last_request_handed() == 0);
  pair.first.link->give_up_requests({.message = "it cannot be reached"});
  REQUIRE(pair.loop.until([&] { return pair.first.unreachable == 2; }));
  pair.bytes_of_next_connection = [] { return std::size_t{1} << 20; };
  CHECK(pair.loop.until([&] { return pair.second.arrived.size() == 2; }));
  CHECK(pair.second.arrived == std::vector<std::string>{"a borrow", "skip"});
}

TEST_CASE("the time that a process stands still is not counted to those whom it cannot reach",
          "[runtime][calls][link][silence]") {
  Pair pair(1, [](std::mt19937&) { return std::size_t{0}; });
  pair.first.callbacks.patience = 1s;
  pair.first.send("a request", 1);
  pair.first.link->reach(Pair::somewhere());
  REQUIRE(pair.loop.until([&] { return pair.first.broken > 0; }));
  boost::asio::post(pair.loop.context, [&] {
    std::this_thread::sleep_for(2s);
    pair.bytes_of_next_connection = [] { return std::size_t{1} << 20; };
  });
  CHECK(pair.loop.until([&] { return pair.second.arrived.size() == 1; }));
  CHECK(pair.first.unreachable == 0);
}

namespace {

/// A link whose other end takes bytes only when told to.
struct SlowReader {
  Loop loop;
  transport::test::RawPair ends{loop};
  Side side{loop, kSecond, [](const auto&, const auto&) {}};
  const ConnectionPtr connection = Connection::make(std::move(ends.socket));
  int released = 0;

  SlowReader() {
    side.link->adopt(connection);
    send_much();
  }
  /// More than a socket takes.
  void send_much() { side.send(std::string(std::size_t{4} << 20, 'x')); }
  void write_out() {
    side.link->write_out([this] { ++released; });
  }
  void take() const {
    std::vector<char> bytes(100'000);
    ::recv(ends.raw.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  }
  bool take_all() {
    return loop.until([&] {
      take();
      return connection->queued_bytes() == 0;
    });
  }
};

}  // namespace

TEST_CASE("who writes out waits until the process has taken what does not fit its socket",
          "[runtime][calls][link]") {
  SlowReader reader;
  std::size_t queued = 0;
  reader.side.link->write_out([&] {
    ++reader.released;
    queued = reader.connection->queued_bytes();
  });
  CHECK_FALSE(reader.loop.until([&] { return reader.released != 0; }, 100ms));
  reader.send_much();
  const auto later = reader.connection->queued_bytes() / 2;
  CHECK(reader.loop.until([&] {
    reader.take();
    return reader.released == 1;
  }));
  CHECK(queued > later / 2);  // what was sent after that is not waited for
  CHECK(reader.take_all());
  reader.write_out();
  CHECK(reader.released == 2);  // at once
}

TEST_CASE("who writes out is let go where the link is stopped", "[runtime][calls][link]") {
  SlowReader reader;
  reader.write_out();
  CHECK(reader.released == 0);
  reader.side.link->stop();
  CHECK(reader.released == 1);
  reader.write_out();
  CHECK(reader.released == 2);
}

TEST_CASE("who writes out is let go where the connection breaks", "[runtime][calls][link]") {
  SlowReader reader;
  reader.write_out();
  CHECK(reader.released == 0);
  ::shutdown(reader.ends.raw.get(), SHUT_RDWR);
  CHECK(reader.loop.until([&] { return reader.released == 1; }));
  reader.write_out();
  CHECK(reader.released == 2);
}

TEST_CASE("who writes out to another machine does not wait", "[runtime][calls][link]") {
  Loop loop;
  auto [near, far] = transport::test::socket_pair(loop, true);
  Side side{loop, kSecond, [](const auto&, const auto&) {}};
  side.link->adopt(Connection::make(std::move(near)));
  side.send(std::string(std::size_t{16} << 20, 'x'));
  bool released = false;
  side.link->write_out([&] { released = true; });
  CHECK(released);
}

TEST_CASE("a process that takes nothing for long is waited for again once it has taken something",
          "[runtime][calls][link]") {
  SlowReader reader;
  reader.side.callbacks.write_patience = 50ms;
  reader.write_out();
  CHECK(reader.released == 0);
  REQUIRE(reader.loop.until([&] { return reader.released == 1; }));
  reader.write_out();
  CHECK(reader.released == 2);
  reader.side.callbacks.write_patience = transport::test::kNoDeadline;
  const auto before = reader.connection->written_bytes();
  REQUIRE(reader.loop.until([&] {
    reader.take();
    return reader.connection->written_bytes() > before;
  }));
  reader.write_out();
  CHECK(reader.released == 2);
  CHECK(reader.take_all());
  CHECK(reader.loop.until([&] { return reader.released == 3; }));
}

TEST_CASE("what a process had sent is read at once when it is drained", "[runtime][calls][link]") {
  Loop loop;
  auto [near, far] = transport::test::socket_pair(loop, false);
  Side writer{loop, kFirst, [](const auto&, const auto&) {}};
  Side reader{loop, kSecond, [](const auto&, const auto&) {}};
  writer.link->adopt(Connection::make(std::move(near)));
  reader.link->adopt(Connection::make(std::move(far)));
  writer.send("a reply");
  bool written = false;
  writer.link->write_out([&] { written = true; });
  REQUIRE(written);
  writer.link->close();
  reader.link->stop();
  CHECK(reader.arrived.empty());
  reader.link->drain();
  CHECK(reader.arrived == std::vector<std::string>{"a reply"});
}
