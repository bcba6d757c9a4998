#pragma once

#include "collective/host/channel.hpp"
#include "collective/host/network/socket.hpp"

namespace troupe::train {

/// A channel between ranks of two nodes: a TCP connection that Introducer made.
class SocketChannel final : public Channel {
 public:
  SocketChannel(Patience& patience, Socket socket, int peer)
      : Channel(peer), patience_(patience), socket_(std::move(socket)) {}

  bool put(std::span<const std::byte>& out) override;
  bool take(std::span<std::byte>& in) override;
  void wait_to_put(std::chrono::milliseconds slice) override;
  void wait_to_take(std::chrono::milliseconds slice) override;
  [[noreturn]] void throw_ended() const override { patience_.throw_hung_up(peer(), 0); }

 private:
  Patience& patience_;
  Socket socket_;
};

}  // namespace troupe::train
