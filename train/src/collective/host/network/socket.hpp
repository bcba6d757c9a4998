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

/// A listener on a free port of `host`, an address of this machine or a name of one. Throws
/// troupe::Error with the system's reason.
Socket listen_on(const std::string& host);
/// Where a listener can be reached: its port and its address, or, if it listens on all, those of
/// the interfaces that are up, loopback last. "35111 10.0.0.5".
std::string place_of(const Socket& listener);

/// Starts to connect. An empty socket if the address is no number or the system refuses at once.
Socket connect_to(const std::string& address, int port);

/// Moves what the system takes (has) now; the span shrinks by it. Throws GangBroken where the
/// connection to `rank` has ended.
void send_some(const Socket& to, int rank, std::span<const std::byte>& out, Patience& patience);
void receive_some(const Socket& from, int rank, std::span<std::byte>& in, Patience& patience);

/// Sends all of `out` to `to` while receiving all of `in` from `from`. Blocks in slices in which it
/// asks `patience` and `stop` (throws to leave). Throws GangBroken, naming `to_rank` or
/// `from_rank`, where a connection has ended.
struct Duplex {
  const Socket& to;
  int to_rank;
  const Socket& from;
  int from_rank;
};
template <class Stop>
void transfer(const Duplex& link, std::span<const std::byte> out, std::span<std::byte> in,
              Patience& patience, Stop stop);

/// One step of transfer that waits at most a slice. -> true when both are done; `out` and `in`
/// shrink by what was moved.
bool transfer_slice(const Duplex& link, std::span<const std::byte>& out, std::span<std::byte>& in,
                    Patience& patience);

template <class Stop>
void transfer(const Duplex& link, std::span<const std::byte> out, std::span<std::byte> in,
              Patience& patience, Stop stop) {
  while (!transfer_slice(link, out, in, patience)) {
    stop();
    patience.check([&] { return std::vector{in.empty() ? link.to_rank : link.from_rank}; });
  }
}

}  // namespace troupe::train
