#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/call.hpp"

namespace troupe::train {

/// A TCP socket (or nothing), closed by its owner's end. Non-blocking.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A listener on a free port of `address` (all addresses if empty). Throws troupe::Error with the system's reason.
Socket listen_on(const std::string& address);
int port_of(const Socket& listener);
/// Where other nodes may reach this one: addresses of the interfaces that are up, loopback last.
std::vector<std::string> own_addresses();

/// Starts to connect. An empty socket if the address is not one or the system refuses at once.
Socket connect_to(const std::string& address, int port);

/// Sends all of `out` to `to` while receiving all of `in` from `from`. Blocks in slices in which it asks `patience` and
/// `stop` (throws to leave). Throws GangBroken, naming `to_rank` or `from_rank`, where a connection has ended.
struct Duplex {
  const Socket& to;
  int to_rank;
  const Socket& from;
  int from_rank;
};
template <class Stop>
void transfer(const Duplex& link, std::span<const std::byte> out, std::span<std::byte> in, Patience& patience,
              Stop stop);

/// One step of transfer that waits at most a slice. -> true when both are done; `out` and `in` shrink by what was moved.
bool transfer_slice(const Duplex& link, std::span<const std::byte>& out, std::span<std::byte>& in,
                    const Patience& patience);

template <class Stop>
void transfer(const Duplex& link, std::span<const std::byte> out, std::span<std::byte> in, Patience& patience,
              Stop stop) {
  while (!transfer_slice(link, out, in, patience)) {
    stop();
    if (patience.expired()) {
      patience.throw_timed_out(in.empty() ? std::vector{link.to_rank} : std::vector{link.from_rank});
    }
  }
}

}  // namespace troupe::train
