#include "transport/connection.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;

namespace {

/// Answers every text with the same text.
void start_echo(ConnectionPtr& echo, Socket socket) {
  echo = Connection::make(std::move(socket));
  echo->start(
      [&](wire::Message::Reader message) {
        echo->send(text_message(message.getShutdown().cStr()));
      },
      [](const std::string&) {});
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 4096) % 26);
  return text;
}

}  // namespace

TEST_CASE("messages of every size come back as they were sent", "[transport][connection]") {
  const bool tcp = GENERATE(true, false);
  Loop loop;
  auto [here, there] = socket_pair(loop, tcp);
  ConnectionPtr echo;
  start_echo(echo, std::move(there));
  End end;
  end.start(std::move(here));

  std::vector<std::string> sent;
  for (const std::size_t bytes : {0, 1, 4096, 65500, 65520, 65528, 65536, 300'000, 10 << 20, 3})
    sent.push_back(pattern(bytes));
  for (const auto& text : sent) end.connection->send(text_message(text));

  REQUIRE(loop.until([&] { return end.texts.size() == sent.size(); }));
  CHECK(end.texts == sent);
  CHECK(end.closed.empty());
}

TEST_CASE("a message that grew in many segments, and one that is sent twice, arrive whole",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, false);
  auto sender = Connection::make(std::move(here));
  std::vector<unsigned> sizes;
  auto receiver = Connection::make(std::move(there));
  receiver->start(
      [&](wire::Message::Reader message) {
        for (const auto payload : message.getCall().getArgs())
          sizes.push_back(payload.getData().size());
      },
      [](const std::string&) {});

  Outgoing message;
  auto args = message.root().initCall().initArgs(3);
  args[0].initData(1000);
  args[1].initData(100'000);
  args[2].initData(50'000);
  sender->send(message);
  sender->send(message);

  REQUIRE(loop.until([&] { return sizes.size() == 6; }));
  CHECK(sizes == std::vector<unsigned>{1000, 100'000, 50'000, 1000, 100'000, 50'000});
}

TEST_CASE("100,000 messages arrive in order", "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, true);
  auto sender = Connection::make(std::move(here));
  auto receiver = Connection::make(std::move(there));
  std::uint64_t next = 0;
  bool in_order = true;
  receiver->start(
      [&](wire::Message::Reader message) {
        in_order = in_order && message.getHeartbeat() == next++;
      },
      [](const std::string&) {});
  constexpr std::uint64_t kMessages = 100'000;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    Outgoing message;
    message.root().setHeartbeat(i);
    sender->send(std::move(message));
  }

  REQUIRE(loop.until([&] { return next == kMessages; }));
  CHECK(in_order);
  CHECK(sender->queued_bytes() == 0);
}

TEST_CASE("the peer's end is reported once, and an own end is not", "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, true);
  End left, right;
  left.start(std::move(here));
  right.start(std::move(there));

  left.connection->close();
  left.connection->close();
  left.connection->send(text_message("ignored"));

  REQUIRE(loop.until([&] { return !right.closed.empty(); }));
  loop.until([] { return false; }, 20ms);
  CHECK(right.closed == std::vector<std::string>{"the peer closed the connection"});
  CHECK(left.closed.empty());
  CHECK(!left.connection->is_open());
  CHECK(!right.connection->is_open());
}

TEST_CASE("finish sends what is queued without an owner, and even past unread bytes",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, true);
  End left, right;
  left.start(std::move(here));
  right.start(std::move(there));
  const auto text = pattern(5 << 20);
  right.connection->send(text_message(text));  // on its way to one who will not read it any more

  left.connection->send(text_message(text));
  left.connection->send(text_message("last words"));
  left.connection->finish();
  CHECK(!left.connection->is_open());
  left.connection.reset();

  REQUIRE(loop.until([&] { return !right.closed.empty(); }));
  REQUIRE(right.texts.size() == 2);
  CHECK(right.texts[0] == text);
  CHECK(right.texts[1] == "last words");
  CHECK(left.closed.empty());
}

TEST_CASE("finish gives up on a peer that reads nothing", "[transport][connection][slow]") {
  Loop loop;
  RawPair pair(loop);
  auto connection = Connection::make(std::move(pair.socket));
  connection->start([](wire::Message::Reader) {}, [](const std::string&) {});
  connection->send(text_message(pattern(5 << 20)));
  connection->finish();
  connection.reset();

  const auto hung_up = [&] {
    pollfd raw{.fd = pair.raw.get(), .events = 0, .revents = 0};
    ::poll(&raw, 1, 0);
    return (raw.revents & POLLHUP) != 0;
  };
  CHECK(!hung_up());
  CHECK(loop.until(hung_up));
}

TEST_CASE("a handler may drop the last reference in the middle of a delivery",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, false);
  auto sender = Connection::make(std::move(here));
  auto receiver = Connection::make(std::move(there));
  int seen = 0;
  auto guard = std::make_shared<int>(7);
  receiver->start(
      [&, guard](wire::Message::Reader message) {
        ++seen;
        receiver.reset();
        CHECK(*guard == 7);  // the handler itself lives until it returns
        CHECK(message.getShutdown() == "one");
      },
      [&](const std::string&) { FAIL("closed by its owner"); });
  sender->send(text_message("one"));
  sender->send(text_message("two"));

  REQUIRE(loop.until([&] { return seen > 0; }));
  loop.until([] { return false; }, 20ms);
  CHECK(seen == 1);
}

TEST_CASE("a connection that its own handlers hold is freed once it closes",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, false);
  auto receiver = Connection::make(std::move(there));
  const std::weak_ptr<Connection> weak = receiver;
  receiver->start([receiver](wire::Message::Reader) {}, [receiver](const std::string&) {});
  receiver.reset();
  loop.until([] { return false; }, 10ms);
  CHECK(!weak.expired());

  { const Socket gone = std::move(here); }
  CHECK(loop.until([&] { return weak.expired(); }));
}

TEST_CASE("a handler that throws kj::Exception closes that connection with the reason",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, false);
  auto sender = Connection::make(std::move(here));
  auto receiver = Connection::make(std::move(there));
  std::string closed;
  // It is no hello.
  receiver->start([](wire::Message::Reader message) { (void)message.getHello(); },
                  [&](const std::string& why) { closed = why; });
  sender->send(text_message("x"));

  REQUIRE(loop.until([&] { return !closed.empty(); }));
  CHECK_THAT(closed, Catch::StartsWith("the peer sent a malformed message: "));
}

TEST_CASE("messages that arrived with the last one go to the handlers that took over",
          "[transport][connection]") {
  const bool at_once = GENERATE(true, false);
  Loop loop;
  RawPair pair(loop);
  pair.write(frame(text_message("first")) + frame(text_message("second")) +
             frame(text_message(pattern(100'000))));
  End user;
  std::vector<std::string> first;
  user.connection = Connection::make(std::move(pair.socket), kBeforeHandshake);
  user.connection->start(
      [&](wire::Message::Reader message) {
        first.push_back(message.getShutdown());
        if (at_once) {
          user.connection->hand_over({}, user.on_message(), user.on_closed());
        } else {
          user.connection->hand_over({}, nullptr, nullptr);
        }
      },
      [](const std::string& why) { FAIL(why); });

  REQUIRE(loop.until([&] { return !first.empty(); }));
  if (!at_once) {
    loop.until([] { return false; }, 20ms);
    CHECK(user.texts.empty());
    user.connection->hand_over({}, user.on_message(), user.on_closed());
  }
  REQUIRE(loop.until([&] { return user.texts.size() == 2; }));
  CHECK(first == std::vector<std::string>{"first"});
  CHECK(user.texts == std::vector<std::string>{"second", pattern(100'000)});
}

TEST_CASE("what waits to be sent is bounded, and the owner hears of it from the loop",
          "[transport][connection]") {
  Loop loop;
  RawPair pair(loop);
  End end;
  end.start(std::move(pair.socket), {.outbox_bytes = 1 << 20});
  for (int i = 0; i < 20; ++i) end.connection->send(text_message(pattern(100'000)));
  CHECK(!end.connection->is_open());
  CHECK(end.closed.empty());

  REQUIRE(loop.until([&] { return !end.closed.empty(); }));
  CHECK_THAT(end.closed[0],
             Catch::StartsWith("the peer does not keep up: 1000480 bytes wait to be sent"));
}

TEST_CASE("whoever takes over a connection that failed meanwhile is told",
          "[transport][connection]") {
  Loop loop;
  RawPair pair(loop);
  End user;
  user.connection = Connection::make(std::move(pair.socket), {.outbox_bytes = 1000});
  user.connection->start([](wire::Message::Reader) {}, [](const std::string&) {});
  user.connection->hand_over({.outbox_bytes = 1000}, nullptr, nullptr);
  user.connection->send(text_message(pattern(2000)));
  loop.until([] { return false; }, 10ms);

  user.connection->hand_over({}, user.on_message(), user.on_closed());

  REQUIRE(loop.until([&] { return !user.closed.empty(); }));
  CHECK_THAT(user.closed[0], Catch::StartsWith("the peer does not keep up"));
}

TEST_CASE("a message above the frame limit is not sent", "[transport][connection]") {
  Loop loop;
  RawPair pair(loop);
  End end;
  end.start(std::move(pair.socket), {.frame_bytes = 4096});
  end.connection->send(text_message(pattern(5000)));

  REQUIRE(loop.until([&] { return !end.closed.empty(); }));
  CHECK(end.closed[0] == "a message of 5040 bytes was to be sent, the limit is 4096");
}

TEST_CASE("what a peer said before it closed is delivered though nothing can be sent to it",
          "[transport][connection]") {
  Loop loop;
  RawPair pair(loop);
  End end;
  end.start(std::move(pair.socket));
  pair.write(frame(text_message("why I leave")));
  { const OwnedFd gone = std::move(pair.raw); }
  end.connection->send(text_message("too late"));

  REQUIRE(loop.until([&] { return !end.closed.empty(); }));
  CHECK(end.texts == std::vector<std::string>{"why I leave"});
  CHECK(end.closed == std::vector<std::string>{"the peer closed the connection"});
}

TEST_CASE("a connection knows its ends, and its descriptor does not survive an exec",
          "[transport][connection]") {
  Loop loop;
  auto [here, there] = socket_pair(loop, true);
  const int fd = here.native_handle();
  ::fcntl(fd, F_SETFD, 0);
  const auto connection = Connection::make(std::move(here));

  CHECK_THAT(connection->peer(), Catch::StartsWith("127.0.0.1:"));
  CHECK(connection->local_host() == "127.0.0.1");
  CHECK(::fcntl(fd, F_GETFD) == FD_CLOEXEC);
  int no_delay = 0;
  socklen_t size = sizeof(no_delay);
  ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
  CHECK(no_delay != 0);

  auto [left, right] = socket_pair(loop, false);
  CHECK(Connection::make(std::move(left))->peer() == "unix");
}
