#include "collective/socket.hpp"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::train {
namespace {

constexpr int kSliceMs = 50;

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(
      Failure{.kind = Failure::Kind::Disconnected, .message = fmt::format("{}: {}", what, std::strerror(error))});
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

[[noreturn]] void peer_gone(const Patience& patience, int rank, int error) {
  if (patience.gang_is_broken()) patience.throw_broken();
  patience.throw_gone(error == 0 ? fmt::format("rank {} closed its connection", rank)
                                 : fmt::format("the connection to rank {} broke: {}", rank, std::strerror(error)));
}

void send_some(const Socket& to, int rank, std::span<const std::byte>& out, const Patience& patience) {
  while (!out.empty()) {
    const auto sent = ::send(to.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && would_block(errno)) return;
    if (sent < 0) peer_gone(patience, rank, errno);
    out = out.subspan(static_cast<std::size_t>(sent));
  }
}

void receive_some(const Socket& from, int rank, std::span<std::byte>& in, const Patience& patience) {
  while (!in.empty()) {
    const auto got = ::recv(from.fd(), in.data(), in.size(), 0);
    if (got < 0 && would_block(errno)) return;
    if (got <= 0) peer_gone(patience, rank, got == 0 ? 0 : errno);
    in = in.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket listen_on(const std::string& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_ANY);
  if (!address.empty() && ::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
    fail(fmt::format("\"{}\" is no IPv4 address to listen on", address), EINVAL);
  }
  Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) fail("no socket for the ring between nodes", errno);
  if (::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener.fd(), 64) != 0) {
    fail(fmt::format("cannot listen on \"{}\" for the ring between nodes", address), errno);
  }
  return listener;
}

int port_of(const Socket& listener) {
  sockaddr_in at{};
  socklen_t length = sizeof at;
  if (::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
    fail("a listener without a port", errno);
  return ntohs(at.sin_port);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> far;
  std::vector<std::string> loopback;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (auto* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    ((at->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : far).emplace_back(text);
  }
  ::freeifaddrs(list);
  far.insert(far.end(), loopback.begin(), loopback.end());
  return far;
}

Socket connect_to(const std::string& address, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) return {};
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) fail("no socket for the ring between nodes", errno);
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && errno != EINPROGRESS) return {};
  return socket;
}

bool transfer_slice(const Duplex& link, std::span<const std::byte>& out, std::span<std::byte>& in,
                    const Patience& patience) {
  send_some(link.to, link.to_rank, out, patience);
  receive_some(link.from, link.from_rank, in, patience);
  if (out.empty() && in.empty()) return true;
  pollfd waits[2] = {{out.empty() ? -1 : link.to.fd(), POLLOUT, 0}, {in.empty() ? -1 : link.from.fd(), POLLIN, 0}};
  ::poll(waits, 2, kSliceMs);
  return false;
}

}  // namespace troupe::train
