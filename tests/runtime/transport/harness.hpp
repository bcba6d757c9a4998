#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/socket/resolve.hpp"
#include "transport/socket/socket.hpp"

/// One loop on the test's thread, both ends of every connection on it.
namespace troupe::transport::test {

using namespace std::chrono_literals;

/// Of what ends by something that is said: a test gives up long before.
constexpr std::chrono::milliseconds kNoDeadline = 10min;

struct Loop {
  asio::io_context context{1};

  /// Runs until the condition holds; false where `most` has passed before.
  bool until(const std::function<bool()>& condition,
             std::chrono::milliseconds most = troupe::test::kGuard) {
    const auto deadline = std::chrono::steady_clock::now() + most;
    while (!condition()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= 0s) return false;
      context.restart();
      context.run_one_for(std::min<std::chrono::nanoseconds>(left, 50ms));
    }
    return true;
  }
};

inline Socket adopted(asio::io_context& context, int family, OwnedFd fd) {
  boost::system::error_code error;
  auto socket = adopt(context, family, std::move(fd), error);
  REQUIRE_FALSE(error);
  return socket;
}

/// The two ends of a socket: one for a Connection, one to write and read bytes on by hand.
struct RawPair {
  explicit RawPair(Loop& loop) : RawPair(loop, make()) {}
  Socket socket;
  OwnedFd raw;

  void write(std::string_view bytes) const {
    REQUIRE(::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }

 private:
  RawPair(Loop& loop, std::array<int, 2> ends)
      : socket(adopted(loop.context, AF_UNIX, OwnedFd(ends[0]))), raw(ends[1]) {}
  static std::array<int, 2> make() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return ends;
  }
};

inline SocketAddress loopback(std::uint16_t port) {
  std::string error;
  return look_up("127.0.0.1", port, true, error).at(0);
}

/// Two sockets that are connected, over TCP on loopback or over unix.
inline std::pair<Socket, Socket> socket_pair(Loop& loop, bool tcp) {
  if (!tcp) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return {adopted(loop.context, AF_UNIX, OwnedFd(ends[0])),
            adopted(loop.context, AF_UNIX, OwnedFd(ends[1]))};
  }
  std::unique_ptr<Socket> accepted;
  auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket socket) {
    accepted = std::make_unique<Socket>(std::move(socket));
  });
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(listener->port());
  REQUIRE(::connect(fd.get(), address.get(), address.size) == 0);
  REQUIRE(loop.until([&] { return accepted != nullptr; }));
  return {adopted(loop.context, AF_INET, std::move(fd)), std::move(*accepted)};
}

/// Cuts or mends loopback in the network of the calling thread. Nobody is told of that by the other
/// end.
inline bool set_loopback(bool up) {
  const OwnedFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::string("lo").copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = static_cast<short>(up ? IFF_UP : 0);
  return ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

/// Runs the body on a thread with a network of its own, where loopback is all there is. -> what the
/// body returns; true where no such network can be had.
inline bool in_own_network(const std::function<bool()>& body) {
  bool can = true, done = true;
  std::thread thread([&] {
    can = ::unshare(CLONE_NEWNET) == 0 && set_loopback(true);
    if (can) done = body();
  });
  thread.join();
  if (!can) WARN("skipped: network namespaces need root");
  return done;
}

/// What one end has seen.
struct End {
  ConnectionPtr connection;
  std::vector<std::string> texts;  // of `shutdown` messages
  std::vector<std::string> closed;

  void start(Socket socket, Limits limits = {}) {
    connection = Connection::make(std::move(socket), limits);
    connection->start(on_message(), on_closed());
  }
  Connection::OnMessage on_message() {
    return [this](wire::Message::Reader message) {
      texts.push_back(message.isShutdown() ? std::string(message.getShutdown()) : "not a shutdown");
    };
  }
  Connection::OnClosed on_closed() {
    return [this](const std::string& why) { closed.push_back(why); };
  }
};

inline Outgoing text_message(std::string_view text) {
  Outgoing message(text.size());
  auto out = message.root().initShutdown(static_cast<unsigned>(text.size()));
  std::copy(text.begin(), text.end(), out.begin());
  return message;
}

inline std::string frame(Outgoing message) {
  std::vector<char> bytes;
  message.append_to(bytes);
  return {bytes.begin(), bytes.end()};
}

}  // namespace troupe::transport::test
