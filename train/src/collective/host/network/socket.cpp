#include "collective/host/network/socket.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::train {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(Failure{.kind = Failure::Kind::Disconnected,
                      .message = fmt::format("{}: {}", what, std::strerror(error))});
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

[[noreturn]] void peer_gone(Patience& patience, int rank, int error) {
  if (rank >= 0) patience.throw_hung_up(rank, error);
  patience.throw_gone("a stranger hung up");
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList look_up(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    found = nullptr;
  return {found, ::freeaddrinfo};
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> far;
  std::vector<std::string> loopback;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(found, ::freeifaddrs);
  for (auto* at = list.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET ||
        (at->ifa_flags & IFF_UP) == 0)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text,
                sizeof text);
    ((at->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : far).emplace_back(text);
  }
  far.insert(far.end(), loopback.begin(), loopback.end());
  return far;
}

/// A rank whose host is gone is noticed within 20 s on a connection on which nothing is under way;
/// where something is, the head says that the gang is broken. TCP_USER_TIMEOUT would also end the
/// connection to a rank that is only late. What is accepted inherits this from its listener.
void keep_alive(const Socket& socket) {
  constexpr std::pair<int, int> kOptions[] = {
      {TCP_KEEPIDLE, 5}, {TCP_KEEPINTVL, 5}, {TCP_KEEPCNT, 3}};  // seconds, count
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  for (const auto& [option, value] : kOptions)
    ::setsockopt(socket.fd(), IPPROTO_TCP, option, &value, sizeof value);
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

Socket listen_on(const std::string& host) {
  const auto what = fmt::format("cannot listen on \"{}\" for ranks of other nodes", host);
  const auto found = look_up(host, 0, AI_PASSIVE);
  if (!found) fail(fmt::format("{}: it is no address of this machine", what), EADDRNOTAVAIL);
  Socket listener(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) fail(what, errno);
  keep_alive(listener);
  if (::bind(listener.fd(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener.fd(), 64) != 0) {
    fail(what, errno);
  }
  return listener;
}

std::string place_of(const Socket& listener) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&at), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&at), length, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    fail("a listener without an address", errno);
  }
  const std::string address = host;
  auto text = std::string(port);
  if (address != "0.0.0.0" && address != "::") return text + " " + address;
  for (const auto& own : own_addresses()) text += " " + own;
  return text;
}

Socket connect_to(const std::string& address, int port) {
  const auto found = look_up(address, port, AI_NUMERICHOST);
  if (!found) return {};
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) fail("no socket for ranks of other nodes", errno);
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  keep_alive(socket);
  if (::connect(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)
    return {};
  return socket;
}

void send_some(const Socket& to, int rank, std::span<const std::byte>& out, Patience& patience) {
  while (!out.empty()) {
    const auto sent = ::send(to.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && would_block(errno)) return;
    if (sent < 0) peer_gone(patience, rank, errno);
    out = out.subspan(static_cast<std::size_t>(sent));
  }
}

void receive_some(const Socket& from, int rank, std::span<std::byte>& in, Patience& patience) {
  while (!in.empty()) {
    const auto got = ::recv(from.fd(), in.data(), in.size(), 0);
    if (got < 0 && would_block(errno)) return;
    if (got <= 0) peer_gone(patience, rank, got == 0 ? 0 : errno);
    in = in.subspan(static_cast<std::size_t>(got));
  }
}

bool transfer_slice(const Duplex& link, std::span<const std::byte>& out, std::span<std::byte>& in,
                    Patience& patience) {
  send_some(link.to, link.to_rank, out, patience);
  receive_some(link.from, link.from_rank, in, patience);
  if (out.empty() && in.empty()) return true;
  pollfd waits[2] = {{out.empty() ? -1 : link.to.fd(), POLLOUT, 0},
                     {in.empty() ? -1 : link.from.fd(), POLLIN, 0}};
  ::poll(waits, 2, static_cast<int>(Patience::kSlice.count()));
  return false;
}

}  // namespace troupe::train
