#include "transport/patience.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <boost/asio/post.hpp>

#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

/// A listener that does nothing for its first callers, as a head does that is busy or stopped, and
/// serves the others.
struct BusyHead {
  BusyHead(Loop& loop, int ignored_first) : ignored(ignored_first) {
    options.key = [](const Caller&) { return Secret{}; };
    options.timeout = kNoDeadline;
    listener = Listener::tcp(loop.context, "127.0.0.1", 0, [this](Socket socket) {
      ++callers;
      if (callers <= ignored) {
        if (!greeting.empty())
          ::send(socket.native_handle(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
        return kept.push_back(std::move(socket));
      }
      handshake = accept(
          std::move(socket), options,
          [this](ConnectionPtr open, Accepted) { served = std::move(open); }, [](Denied) {});
    });
  }
  std::string name() const { return "127.0.0.1:" + std::to_string(listener->port()); }

  int ignored;
  int callers = 0;
  std::string greeting;
  ServerOptions options;
  std::unique_ptr<Listener> listener;
  std::vector<Socket> kept;
  std::weak_ptr<Handshake> handshake;  // the last
  ConnectionPtr served;
};

struct Program {
  ConnectionPtr connection;
  std::vector<Denied> denied;
  std::vector<std::string> lines;
  int lines_until_given_up = 100;
  int attempts = Patience{}.attempts;
  std::chrono::milliseconds time{0};
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration first_line{}, took{};

  void call(Loop& loop, const BusyHead& head, std::chrono::milliseconds timeout) {
    const auto passed = [this] { return std::chrono::steady_clock::now() - begun; };
    Patience patience;
    patience.attempts = attempts;
    patience.time = time;
    patience.again = [this, passed](const std::string& line) {
      if (lines.empty()) first_line = passed();
      lines.push_back(line);
      return static_cast<int>(lines.size()) < lines_until_given_up;
    };
    connect_patiently(
        loop.context, {.host = "127.0.0.1", .port = head.listener->port(), .unix_name = ""},
        {.self = {}, .key = {}, .timeout = timeout}, patience,
        [this](ConnectionPtr open, Accepted) { connection = std::move(open); },
        [this](Denied why) { denied.push_back(std::move(why)); });
    REQUIRE(loop.until([&] { return connection || !denied.empty(); }));
    took = passed();
    loop.until([] { return false; }, 10ms);
  }
};

}  // namespace

TEST_CASE("a head that is busy at first is reached at the next attempt", "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 1);
  Program caller;
  caller.attempts = 100;  // on a slow machine the next one may come to its deadline, too
  caller.call(loop, head, 200ms);
  CHECK(caller.connection);
  CHECK(caller.denied.empty());
  REQUIRE_FALSE(caller.lines.empty());
  CHECK_THAT(caller.lines[0],
             Catch::StartsWith(head.name() + " accepted the connection but said nothing within ") &&
                 Catch::EndsWith("or it is too busy or stopped; trying again"));
  CHECK(head.callers == static_cast<int>(caller.lines.size()) + 1);
}

TEST_CASE("a port that stays silent is given up after three attempts, with one text",
          "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 100);
  Program caller;
  caller.call(loop, head, 900ms);  // the default, which users meet
  REQUIRE(caller.denied.size() == 1);
  CHECK(caller.denied[0].may_be_busy);
  CHECK(caller.denied[0].why ==
        head.name() +
            " accepted the connection but said nothing within 0.9 s: it is no Troupe head (use the "
            "address that `troupe head` printed), or it is too busy or stopped (tried 3 times)");
  CHECK(caller.lines.size() == 2);
  CHECK(head.callers == 3);
  CHECK(caller.first_line >= 900ms);
  CHECK(caller.took >= 2700ms);
}

TEST_CASE("a busy server is tried for as long as is said, in attempts that become longer",
          "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 100);
  Program caller;
  caller.time = 400ms;  // 3 x 50 ms, 100 ms, 200 ms
  caller.call(loop, head, 50ms);
  REQUIRE(caller.denied.size() == 1);
  CHECK_THAT(caller.denied[0].why, Contains("within 0.2 s") && EndsWith("(tried 5 times)"));
  REQUIRE(caller.lines.size() == 4);
  CHECK_THAT(caller.lines[0], EndsWith("; trying again, for 0.4 s in all"));
  CHECK(caller.took >= 450ms);
}

TEST_CASE("a server whose queue is full of those who called it before is busy",
          "[transport][patience]") {
  Loop loop;
  const os::UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  REQUIRE(::bind(listening.get(), address, size) == 0);
  REQUIRE(::listen(listening.get(), 0) == 0);  // for one caller
  REQUIRE(::getsockname(listening.get(), address, &size) == 0);
  std::vector<Denied> denied;
  connect_patiently(
      loop.context, {.host = "127.0.0.1", .port = ntohs(at.sin_port), .unix_name = ""},
      {.self = {}, .key = {}, .timeout = 200ms}, {}, [](ConnectionPtr, Accepted) {},
      [&](Denied why) { denied.push_back(std::move(why)); });
  REQUIRE(loop.until([&] { return !denied.empty(); }));
  CHECK(denied[0].may_be_busy);
  CHECK_THAT(denied[0].why, Contains("accepted the connection but said nothing within 0.2 s") &&
                                EndsWith("(tried 3 times)"));
}

TEST_CASE("whoever has stopped waiting ends the attempts", "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 100);
  Program caller;
  caller.lines_until_given_up = 1;
  caller.call(loop, head, 200ms);
  REQUIRE(caller.denied.size() == 1);
  CHECK_THAT(caller.denied[0].why, EndsWith("it is too busy or stopped"));
  CHECK(head.callers == 1);
}

TEST_CASE("what is certain is not tried again: wrong bytes, nobody there",
          "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 1);
  Program caller;
  SECTION("wrong bytes") {
    head.greeting = "SSH-2.0-OpenSSH_9.2p1\r\n";
    caller.call(loop, head, kNoDeadline);
    CHECK_THAT(caller.denied.at(0).why,
               StartsWith(head.name()) && Contains("does not speak Troupe: it sent 'SSH-2.0"));
  }
  SECTION("another token") {
    head.ignored = 0;
    head.options.key = [](const Caller&) { return Secret{1}; };
    caller.call(loop, head, kNoDeadline);
    CHECK_THAT(caller.denied.at(0).why, StartsWith("the token differs"));
  }
  SECTION("nobody there") {
    BusyHead gone(loop, 0);
    const auto port = gone.listener->port();
    gone.listener.reset();
    connect_patiently(
        loop.context, {.host = "127.0.0.1", .port = port, .unix_name = ""},
        {.self = {}, .key = {}, .timeout = kNoDeadline}, {}, [](ConnectionPtr, Accepted) {},
        [&](Denied why) { caller.denied.push_back(std::move(why)); });
    REQUIRE(loop.until([&] { return !caller.denied.empty(); }));
    CHECK_THAT(caller.denied.at(0).why, StartsWith("nothing listens on"));
  }
  CHECK_FALSE(caller.denied.at(0).may_be_busy);
  CHECK(caller.lines.empty());
  CHECK(head.callers <= 1);
}

TEST_CASE("a server that was too late itself, and hangs up after its challenge, is tried again",
          "[transport][patience]") {
  Loop loop;
  BusyHead head(loop, 0);
  head.options.key = [&](const Caller&) {
    // As at its deadline, and once its challenge is sent.
    const auto hang_up = [&] {
      if (const auto late = head.handshake.lock()) late->give_up("it was too late");
    };
    if (head.callers == 1) asio::post(loop.context, hang_up);
    return Secret{};
  };
  Program caller;
  caller.call(loop, head, kNoDeadline);
  CHECK(caller.connection);
  CHECK(caller.lines.size() == 1);
  CHECK(head.callers == 2);
}
