#include <fcntl.h>
#include <sys/resource.h>

#include <troupe/errors.hpp>

#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

OwnedFd dial(std::uint16_t port) {
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(port);
  REQUIRE(::connect(fd.get(), address.get(), address.size) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a listener accepts every caller, with descriptors that do not survive an exec",
          "[transport][listener]") {
  Loop loop;
  std::vector<Socket> accepted;
  const auto listener = Listener::tcp(
      loop.context, "127.0.0.1", 0, [&](Socket socket) { accepted.push_back(std::move(socket)); });
  REQUIRE(listener->port() != 0);
  std::vector<OwnedFd> callers;
  for (int i = 0; i < 200; ++i) callers.push_back(dial(listener->port()));

  REQUIRE(loop.until([&] { return accepted.size() == callers.size(); }));
  for (auto& socket : accepted) CHECK((::fcntl(socket.native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a listener may be ended by its own callback, and its port is free then",
          "[transport][listener]") {
  Loop loop;
  std::unique_ptr<Listener> listener;
  int accepted = 0;
  listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket) {
    ++accepted;
    listener.reset();
  });
  const auto port = listener->port();
  const auto one = dial(port);
  const auto two = dial(port);
  REQUIRE(loop.until([&] { return accepted > 0; }));
  loop.until([] { return false; }, 20ms);

  CHECK(accepted == 1);
  CHECK(Listener::tcp(loop.context, "127.0.0.1", port, [](Socket) {})->port() == port);
}

TEST_CASE("a port in use, a foreign address and an unknown host are refused by name",
          "[transport][listener]") {
  Loop loop;
  const auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [](Socket) {});
  const auto listen = [&](const std::string& host, std::uint16_t port) {
    Listener::tcp(loop.context, host, port, [](Socket) {});
  };

  CHECK_THROWS_WITH(
      listen("127.0.0.1", listener->port()),
      StartsWith("port " + std::to_string(listener->port()) + " is in use on 127.0.0.1: "));
  CHECK_THROWS_WITH(listen("192.0.2.1", 0),
                    StartsWith("192.0.2.1 is no address of this machine: "));
  CHECK_THROWS_AS(listen("no-such-host.invalid", 0), Refused);
}

TEST_CASE("a unix name is taken once, and freed with its listener", "[transport][listener]") {
  Loop loop;
  const auto name = "troupe-listener-" + std::to_string(::getpid());
  auto listener = Listener::abstract_unix(loop.context, name, [](Socket) {});
  CHECK(listener->port() == 0);
  CHECK_THROWS_WITH(Listener::abstract_unix(loop.context, name, [](Socket) {}),
                    Contains("'@" + name + "'"));
  listener.reset();
  CHECK_NOTHROW(Listener::abstract_unix(loop.context, name, [](Socket) {}));
  CHECK_THROWS_AS(Listener::abstract_unix(loop.context, "", [](Socket) {}), Refused);
  CHECK_THROWS_AS(Listener::abstract_unix(loop.context, std::string(108, 'x'), [](Socket) {}),
                  Refused);
}

TEST_CASE("without free descriptors a listener waits instead of spinning, and then goes on",
          "[transport][listener]") {
#ifdef __SANITIZE_ADDRESS__
  WARN(
      "skipped: the vptr check of this sanitizer build needs a free descriptor itself, and reports "
      "an error without");
  return;
#endif
  Loop loop;
  int accepted = 0;
  const auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket) { ++accepted; });
  const auto caller = dial(listener->port());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(caller.get());  // every new descriptor would be above it
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  int turns = 0;
  loop.until([&] { return ++turns > 1000; }, 300ms);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);

  CHECK(accepted == 0);
  CHECK(turns < 50);
  CHECK(loop.until([&] { return accepted == 1; }));
}
