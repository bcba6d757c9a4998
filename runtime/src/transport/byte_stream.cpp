#include "transport/byte_stream.hpp"

#include <cerrno>
#include <system_error>

#include <sys/socket.h>

#include "transport/socket/descriptors.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::transport {
namespace {

ByteStream::Result failed(int error) {
  using Outcome = ByteStream::Outcome;
  const bool later = error == EAGAIN || error == EWOULDBLOCK;
  return {.outcome = later ? Outcome::WouldBlock : Outcome::Broken, .error = error};
}

template <class Call>
ssize_t uninterrupted(Call call) {
  for (;;) {
    const ssize_t moved = call();
    if (moved >= 0 || errno != EINTR) return moved;
  }
}

}  // namespace

std::string ByteStream::Result::error_text() const {
  return std::generic_category().message(error);
}

bool ByteStream::Result::closed_by_peer() const {
  return outcome == Outcome::Ended ||
         (outcome == Outcome::Broken && (error == EPIPE || error == ECONNRESET));
}

ByteStream::ByteStream(Socket socket, std::function<void()> unreachable)
    : socket_(std::move(socket)),
      unanswered_(socket_.get_executor(), socket_.native_handle(), {}, std::move(unreachable)),
      peer_(peer_name(socket_.native_handle())),
      local_host_(local_address(socket_.native_handle())) {
  prepare(socket_.native_handle());
}

ByteStream::Result ByteStream::read(std::span<char> into, std::vector<os::UniqueFd>& descriptors) {
  const auto got = uninterrupted(
      [&] { return receive_piece(socket_.native_handle(), into, descriptors, MSG_DONTWAIT); });
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  return got == 0 ? Result{.outcome = Outcome::Ended} : failed(errno);
}

ByteStream::Result ByteStream::write(std::span<iovec> pieces, std::span<const int> descriptors) {
  const auto sent = uninterrupted(
      [&] { return send_pieces(socket_.native_handle(), pieces, descriptors, MSG_DONTWAIT); });
  if (sent < 0) return failed(errno);
  unanswered_.sent();
  return {.bytes = static_cast<std::size_t>(sent)};
}

void ByteStream::shut_down_writing() { ::shutdown(socket_.native_handle(), SHUT_WR); }

void ByteStream::close() {
  unanswered_.stop();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

os::UniqueFd ByteStream::release() {
  unanswered_.stop();
  boost::system::error_code error;
  return os::UniqueFd(socket_.release(error));
}

int ByteStream::peer_pid() const {
  ucred who{};
  socklen_t size = sizeof who;
  auto& socket = const_cast<Socket&>(socket_);  // native_handle() changes nothing
  const bool known =
      ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  return known && who.pid > 0 ? who.pid : 0;
}

}  // namespace troupe::transport
