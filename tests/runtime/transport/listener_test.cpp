#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
// After <netinet/in.h>, whose types it takes then.
#include <linux/ipv6.h>

#include <troupe/errors.hpp>

#include "eventually.hpp"
#include "transport/harness.hpp"
#include "transport/socket/dial.hpp"

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

/// The name of the peer that listens there, or why nobody could be reached.
std::string peer_at(Loop& loop, const Endpoint& to) {
  std::string answer;
  const auto dial = std::make_shared<Dial>(
      loop.context, to, "start it",
      [&](Socket socket) { answer = peer_name(socket.native_handle()); },
      [&](const DialFailure& failed) { answer = failed.why; });
  dial->start();
  loop.until([&] { return !answer.empty(); });
  return answer;
}

constexpr auto kLinkLocal = "fe80::1%lo";

/// Gives loopback that address, in the network of the calling thread.
bool add_link_local_address() {
  const OwnedFd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_ifreq request{};
  request.ifr6_addr.s6_addr[0] = 0xfe;
  request.ifr6_addr.s6_addr[1] = 0x80;
  request.ifr6_addr.s6_addr[15] = 1;
  request.ifr6_prefixlen = 64;
  request.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
  if (::ioctl(fd.get(), SIOCSIFADDR, &request) != 0) return false;
  std::string error;
  const auto address = look_up(kLinkLocal, 0, true, error).at(0);
  // The kernel has it a moment later.
  return troupe::test::eventually([&] {
    const OwnedFd listening(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::bind(listening.get(), address.get(), address.size) == 0;
  });
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

TEST_CASE("a peer is reached again by its name, also one at a link-local address",
          "[transport][listener]") {
  std::string name, first, again;
  bool has_address = true;
  const auto ask = [&](const std::string& host) {
    Loop loop;
    const auto listener = Listener::tcp(loop.context, host, 0, [](Socket) {});
    name = format_endpoint(host, listener->port());
    first = peer_at(loop, {.host = host, .port = listener->port(), .unix_name = {}});
    if (first == name) again = peer_at(loop, parse_endpoint(first));
  };
  SECTION("at a link-local one") {
    const bool done = in_own_network([&] {
      has_address = add_link_local_address();
      if (has_address) ask(kLinkLocal);
      return true;
    });
    REQUIRE(done);
    if (!has_address) WARN("skipped: loopback takes no link-local address (IPv6 is off)");
  }
  SECTION("at one of IPv4") { ask("127.0.0.1"); }
  CHECK(first == name);
  CHECK(again == name);
}
