#include "transport/socket/acceptor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "harness.hpp"
#include "os/unique_fd.hpp"
#include "transport/socket/socket.hpp"

using namespace troupe::transport;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

struct Place {
  explicit Place(AcceptLimits limits)
      : acceptor(std::make_unique<Acceptor>(
            loop, "it ", limits, [this](const std::string& line) { log.push_back(line); })),
        listener(Listener::tcp(loop, "127.0.0.1", 0,
                               [this](Socket socket) { accept(std::move(socket)); })) {}

  void accept(Socket socket) {
    ServerOptions options;
    options.cluster = "c";
    options.timeout = kGuard;
    options.key = [](const Caller&) { return Secret{}; };
    ++sockets;
    acceptor->accept(std::move(socket), std::move(options),
                     [this](ConnectionPtr connection, const Accepted&) {
                       accepted.push_back(std::move(connection));
                     });
    most_pending = std::max(most_pending, acceptor->pending());
  }

  template <class Condition>
  void run_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kGuard;
    while (!condition()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      if (loop.stopped()) loop.restart();
      loop.run_one_for(10ms);
    }
  }

  /// A caller that says this and no more.
  troupe::os::UniqueFd call(const std::string& bytes) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(listener->port());
    troupe::os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto before = sockets;
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    if (!bytes.empty()) REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
    run_until([&] { return sockets > before; });
    return fd;
  }
  void honest_call() {
    ClientOptions options;
    options.timeout = kGuard;
    connect(
        loop, {.host = "127.0.0.1", .port = listener->port(), .unix_name = {}}, options,
        [this](ConnectionPtr connection, const Accepted&) {
          callers.push_back(std::move(connection));
        },
        [](const Denied& denied) { FAIL(denied.why); });
  }

  boost::asio::io_context loop;
  std::vector<std::string> log;
  std::vector<ConnectionPtr> accepted, callers;
  std::size_t sockets = 0, most_pending = 0;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Listener> listener;
};

/// Nothing, and the connection stands.
bool is_open(const troupe::os::UniqueFd& caller) {
  char byte = 0;
  return ::recv(caller.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::size_t bytes_of(const std::vector<std::string>& lines) {
  std::size_t sum = 0;
  for (const auto& line : lines) sum += line.size() + 1;
  return sum;
}

}  // namespace

TEST_CASE("of callers that say nothing the oldest make room, and who is honest gets through",
          "[transport][accept]") {
  Place place({.most_pending = 20, .log_period = 60s});
  std::vector<troupe::os::UniqueFd> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(place.call(""));
    if (i % 50 == 0) place.honest_call();
  }
  place.run_until([&] { return place.callers.size() == 6 && place.accepted.size() == 6; });
  CHECK(place.most_pending <= 20);
  CHECK(std::ranges::count_if(silent, is_open) <= 20);
  CHECK(is_open(silent.back()));
}

TEST_CASE("refusals are logged a few times, and then counted", "[transport][accept]") {
  Place place({.most_pending = 20, .most_lines = 3, .log_period = 1s});
  for (int i = 0; i < 2400; ++i) place.call("GET / HTTP/1.0\r\n\r\n");
  place.run_until([&] {
    return place.log.back().find("more connections within 1000 ms") != std::string::npos;
  });
  std::size_t periods = 0, counted = 0;
  for (const auto& line : place.log) {
    const auto more =
        line.find("it refused ") == 0 && line.find(" more connections") != std::string::npos;
    periods += more;
    counted += more ? std::stoul(line.substr(11)) : 1;
  }
  CHECK(place.log.size() <= 4 * (periods + 1));
  CHECK(counted <= 2400);
  CHECK(counted > 2300);  // the last may wait for their end still
  CHECK(bytes_of(place.log) < 4096 * periods);
}

TEST_CASE("an acceptor that ends closes the callers it has, and tells nobody",
          "[transport][accept]") {
  Place place({.most_pending = 20});
  const auto caller = place.call("");
  CHECK(is_open(caller));
  place.acceptor.reset();
  CHECK_FALSE(is_open(caller));
  CHECK(place.log.empty());
}
