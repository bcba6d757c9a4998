#include "support/cut_proxy.hpp"

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <catch2/catch.hpp>

namespace troupe::test {
namespace {

sockaddr_in on_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

CutProxy::CutProxy(const std::string& server)
    : server_port_(static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))),
      listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto address = on_loopback(0);
  socklen_t size = sizeof address;
  REQUIRE(::bind(listening_.number, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(listening_.number, 16) == 0);
  REQUIRE(::getsockname(listening_.number, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

CutProxy::~CutProxy() {
  ends_ = true;
  thread_.join();
}

/// Its end sends a reset then, and drops what was not sent.
void CutProxy::reset_when_closed(const Descriptor& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.number, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

int CutProxy::cut() {
  const std::lock_guard lock(mutex_);
  for (const auto& pair : pairs_) {
    reset_when_closed(pair.client);
    reset_when_closed(pair.server);
  }
  return static_cast<int>(std::exchange(pairs_, {}).size());
}

void CutProxy::block(bool blocked) {
  {
    const std::lock_guard lock(mutex_);
    is_blocked_ = blocked;
  }
  if (blocked) cut();
}

void CutProxy::serve() {
  while (!ends_) {
    std::vector<pollfd> ready{{listening_.number, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const auto& pair : pairs_) {
        ready.push_back({pair.client.number, POLLIN, 0});
        ready.push_back({pair.server.number, POLLIN, 0});
      }
    }
    if (::poll(ready.data(), ready.size(), 5) <= 0) continue;
    const std::lock_guard lock(mutex_);
    if (ready[0].revents != 0) accept();
    std::erase_if(pairs_,
                  [this](const Pair& pair) { return !pass(pair, true) || !pass(pair, false); });
  }
}

void CutProxy::accept() {
  Descriptor client(::accept4(listening_.number, nullptr, nullptr, SOCK_CLOEXEC));
  if (client.number < 0) return;
  if (is_blocked_) return reset_when_closed(client);
  Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = on_loopback(server_port_);
  if (::connect(server.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return reset_when_closed(client);
  pairs_.push_back({std::move(client), std::move(server)});
}

/// Passes on what has arrived from one of the pair's two ends to its other one. False: one of their
/// two connections has ended.
bool CutProxy::pass(const Pair& pair, bool forth) {
  const int from = (forth ? pair.client : pair.server).number;
  const int to = (forth ? pair.server : pair.client).number;
  std::array<char, 64 << 10> bytes;
  const auto got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN;
  for (ssize_t sent = 0; sent < got;) {
    const auto more =
        ::send(to, bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return got > 0;
}

}  // namespace troupe::test
