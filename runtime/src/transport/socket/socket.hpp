#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "transport/connection.hpp"

namespace troupe::transport {

/// An address of any family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

/// Of a name in the abstract namespace, which leaves no file behind. Throws Refused where it is
/// empty or over 107 bytes.
SocketAddress unix_address(const std::string& name);

/// "127.0.0.1", "::1"; empty for unix. Without the zone of a link-local address, which only this
/// machine knows by that name.
std::string host_of(const SocketAddress& address);
std::uint16_t port_of(const SocketAddress& address);
/// "127.0.0.1:80", "[::1]:80".
std::string format_endpoint(const std::string& host, std::uint16_t port);

bool is_loopback(const std::string& host);  ///< a number, or "localhost"

/// "127.0.0.1:4711", "[fe80::1%eth0]:4711", "unix": for messages, and for parse_endpoint, where the
/// peer is one that was dialled over TCP and is to be dialled again.
std::string peer_name(int fd);
std::string local_address(int fd);  ///< host_of this end

/// Non-blocking, closed on exec, without Nagle's delay, and with keep_alive.
void prepare(int fd);

/// A descriptor between the system call that made it and the socket that will own it.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&&) = delete;
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Hands the descriptor to a socket of the loop. Where the kernel watches no more of them for this
/// user or has no memory for that, the descriptor is closed, the socket is not open, and `error`
/// says why.
Socket adopt(asio::io_context& loop, int family, OwnedFd fd, boost::system::error_code& error);
/// The same where only the socket itself knows its family.
Socket adopt(asio::io_context& loop, OwnedFd fd, boost::system::error_code& error);

}  // namespace troupe::transport
