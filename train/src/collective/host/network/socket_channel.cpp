#include "collective/host/network/socket_channel.hpp"

#include <poll.h>

namespace troupe::train {
namespace {

void poll_for(const Socket& socket, short events, std::chrono::milliseconds slice) {
  pollfd wait{socket.fd(), events, 0};
  ::poll(&wait, 1, static_cast<int>(slice.count()));
}

}  // namespace

bool SocketChannel::put(std::span<const std::byte>& out) {
  const auto before = out.size();
  send_some(socket_, peer(), out, patience_);
  return out.size() < before;
}

bool SocketChannel::take(std::span<std::byte>& in) {
  const auto before = in.size();
  receive_some(socket_, peer(), in, patience_);
  return in.size() < before;
}

void SocketChannel::wait_to_put(std::chrono::milliseconds slice) {
  poll_for(socket_, POLLOUT, slice);
}
void SocketChannel::wait_to_take(std::chrono::milliseconds slice) {
  poll_for(socket_, POLLIN, slice);
}

}  // namespace troupe::train
