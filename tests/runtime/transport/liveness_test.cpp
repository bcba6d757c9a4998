#include "transport/liveness.hpp"

#include <cerrno>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "guard.hpp"
#include "transport/harness.hpp"

using namespace troupe::transport;
using namespace troupe::transport::test;
using troupe::test::kGuard;

namespace {

constexpr Liveness kQuick{.idle = 1s, .interval = 1s, .probes = 1, .unanswered = 1s};

/// Two ends of a TCP connection over loopback.
struct Pair {
  OwnedFd near{-1};
  OwnedFd far{-1};

  Pair() : Pair(listen()) {}

 private:
  explicit Pair(OwnedFd listening)
      : near(connect(listening.get())), far(::accept(listening.get(), nullptr, nullptr)) {}
  static OwnedFd listen() {
    OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto any = loopback(0);
    REQUIRE(::bind(fd.get(), any.get(), any.size) == 0);
    REQUIRE(::listen(fd.get(), 1) == 0);
    return fd;
  }
  static OwnedFd connect(int listening) {
    SocketAddress to;
    REQUIRE(::getsockname(listening, to.get(), &to.size) == 0);
    OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.get(), to.get(), to.size) == 0);
    prepare(fd.get());
    return fd;
  }
};

}  // namespace

TEST_CASE("an idle connection whose other host is gone breaks", "[transport][liveness]") {
  CHECK(in_own_network([] {
    Pair pair;
    keep_alive(pair.near.get(), kQuick);
    if (!set_loopback(false)) return false;
    char byte = 0;
    pollfd wait{.fd = pair.near.get(), .events = POLLIN, .revents = 0};
    const auto most = std::chrono::milliseconds(kGuard).count();
    return ::poll(&wait, 1, static_cast<int>(most)) == 1 &&
           ::recv(pair.near.get(), &byte, 1, 0) < 0;
  }));
}

TEST_CASE("a host that is cut off is missed within 20 s, as the kernel is told and asked",
          "[transport][liveness]") {
  const Pair pair;
  keep_alive(pair.near.get());
  const auto told = [&](int level, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    REQUIRE(::getsockopt(pair.near.get(), level, option, &value, &size) == 0);
    return value;
  };
  CHECK(told(SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(told(IPPROTO_TCP, TCP_KEEPIDLE) +
            told(IPPROTO_TCP, TCP_KEEPINTVL) * told(IPPROTO_TCP, TCP_KEEPCNT) <=
        20);
  // It is looked every interval whether that is over.
  CHECK(Liveness{}.unanswered + Liveness{}.interval <= 20s);
}

TEST_CASE("what was sent to a host that is gone is not waited for long", "[transport][liveness]") {
  CHECK(in_own_network([] {
    Pair pair;
    Loop loop;
    bool gone = false;
    UnansweredWatch watch(loop.context.get_executor(), pair.near.get(), kQuick,
                          [&] { gone = true; });
    if (!set_loopback(false) || ::send(pair.near.get(), "hello", 5, MSG_NOSIGNAL) != 5)
      return false;
    watch.sent();
    return loop.until([&] { return gone; }, kGuard);
  }));
}

TEST_CASE(
    "a process that is alive and reads nothing for long is not gone, and what it is sent arrives",
    "[transport][liveness]") {
  Pair pair;
  Loop loop;
  bool gone = false;
  UnansweredWatch watch(loop.context.get_executor(), pair.near.get(), kQuick, [&] { gone = true; });
  std::size_t sent = 0;
  const std::string data(64 * 1024, 'x');
  for (ssize_t some = 0; some >= 0; sent += some > 0 ? static_cast<std::size_t>(some) : 0) {
    some = ::send(pair.near.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  watch.sent();
  loop.until([&] { return gone; }, 5s);
  CHECK_FALSE(gone);
  std::string some(data.size(), ' ');
  std::size_t arrived = 0;
  while (arrived < sent) {
    const auto got = ::recv(pair.far.get(), some.data(), some.size(), 0);
    if (got <= 0) break;
    arrived += static_cast<std::size_t>(got);
  }
  CHECK(arrived == sent);
}
