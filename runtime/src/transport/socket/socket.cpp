#include "transport/socket/socket.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <troupe/errors.hpp>

#include "transport/liveness.hpp"

namespace troupe::transport {
namespace {

template <class Family>
const Family& as(const SocketAddress& address) {
  return reinterpret_cast<const Family&>(address.storage);
}

int family_of(int fd) {
  int family = 0;
  socklen_t size = sizeof(family);
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family;
}

bool is_inet(int family) { return family == AF_INET || family == AF_INET6; }

/// "%eth0" of an address that names a host only together with the interface that leads to it, as a
/// link-local one (RFC 4007); else empty.
std::string zone_of(const SocketAddress& address) {
  if (address.family() != AF_INET6) return {};
  const auto scope = as<sockaddr_in6>(address).sin6_scope_id;
  if (scope == 0) return {};
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(scope, name.data()) ? fmt::format("%{}", name.data())
                                              : fmt::format("%{}", scope);
}

}  // namespace

SocketAddress unix_address(const std::string& name) {
  SocketAddress address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
  if (name.empty() || name.size() >= sizeof(un.sun_path)) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("'{}' cannot name a unix socket: give 1 to {} bytes", name,
                                  sizeof(un.sun_path) - 1)});
  }
  un.sun_family = AF_UNIX;
  std::ranges::copy(name, un.sun_path + 1);  // after a zero byte: abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string host_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.family() == AF_INET) {
    inet_ntop(AF_INET, &as<sockaddr_in>(address).sin_addr, text.data(), text.size());
  } else if (address.family() == AF_INET6) {
    inet_ntop(AF_INET6, &as<sockaddr_in6>(address).sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::uint16_t port_of(const SocketAddress& address) {
  if (address.family() == AF_INET) return ntohs(as<sockaddr_in>(address).sin_port);
  if (address.family() == AF_INET6) return ntohs(as<sockaddr_in6>(address).sin6_port);
  return 0;
}

std::string format_endpoint(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

std::string peer_name(int fd) {
  SocketAddress address;
  if (::getpeername(fd, address.get(), &address.size) != 0) return "a peer that has left";
  if (!is_inet(address.family())) return "unix";
  return format_endpoint(host_of(address) + zone_of(address), port_of(address));
}

std::string local_address(int fd) {
  SocketAddress address;
  return ::getsockname(fd, address.get(), &address.size) == 0 ? host_of(address) : "";
}

void prepare(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  if (is_inet(family_of(fd))) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  keep_alive(fd);
}

Socket adopt(asio::io_context& loop, int family, OwnedFd fd, boost::system::error_code& error) {
  Socket socket(loop);
  socket.assign(asio::generic::stream_protocol(family, is_inet(family) ? IPPROTO_TCP : 0), fd.get(),
                error);
  if (!error) fd.release();
  return socket;
}

Socket adopt(asio::io_context& loop, OwnedFd fd, boost::system::error_code& error) {
  const int family = family_of(fd.get());
  return adopt(loop, family, std::move(fd), error);
}

}  // namespace troupe::transport
