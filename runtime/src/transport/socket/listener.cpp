#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <troupe/errors.hpp>

#include "transport/handshake/handshake.hpp"
#include "transport/socket/resolve.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::transport {
namespace {

using boost::system::error_code;

/// How long to leave callers in the queue where this process has no descriptor left for them.
constexpr std::chrono::milliseconds kBackOff{50};
constexpr int kAcceptsPerTurn = 64;

[[noreturn]] void refuse(std::string message) {
  raise({.kind = Failure::Kind::Refused, .message = std::move(message)});
}

/// Of both kinds of listener. Pending operations know it weakly: on_socket may end it.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(asio::io_context& loop, int family, OwnedFd fd, Listener::OnSocket on_socket)
      : loop_(loop),
        family_(family),
        listening_(loop),
        retry_(loop),
        on_socket_(std::move(on_socket)) {
    listening_.assign(fd.get());
    fd.release();
  }

  void wait() {
    listening_.async_wait(asio::posix::descriptor_base::wait_read,
                          [weak = weak_from_this()](error_code error) {
                            const auto self = weak.lock();
                            if (self && error != asio::error::operation_aborted)
                              self->accept_waiting();
                          });
  }

  void close() {
    error_code ignored;
    listening_.close(ignored);
    retry_.cancel();
  }

 private:
  void accept_waiting() {
    for (int accepted = 0; accepted < kAcceptsPerTurn && listening_.is_open(); ++accepted) {
      OwnedFd fd(
          ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() >= 0) {
        error_code not_watched;
        auto socket = adopt(loop_, family_, std::move(fd), not_watched);
        if (not_watched) return back_off();
        on_socket_(std::move(socket));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return back_off();
      }
    }
    if (listening_.is_open()) wait();
  }

  /// The caller stays in the queue and keeps it readable: to wait for that would spin.
  void back_off() {
    retry_.expires_after(kBackOff);
    retry_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (self && !error) self->accept_waiting();
    });
  }

  asio::io_context& loop_;
  int family_;
  asio::posix::stream_descriptor listening_;
  asio::steady_timer retry_;
  Listener::OnSocket on_socket_;
};

class SocketListener : public Listener {
 public:
  SocketListener(std::shared_ptr<Door> door, std::uint16_t port)
      : door_(std::move(door)), port_(port) {
    door_->wait();
  }
  ~SocketListener() override { door_->close(); }
  std::uint16_t port() const override { return port_; }

 private:
  std::shared_ptr<Door> door_;
  std::uint16_t port_;
};

std::string why_not_bound(const std::string& host, std::uint16_t port, int error) {
  const auto cause = std::generic_category().message(error);
  switch (error) {
    case EADDRINUSE:
      return fmt::format(
          "port {} is in use on {}: stop what listens there, or choose another port, or 0 for any",
          port, host);
    case EADDRNOTAVAIL:
      return fmt::format("{} is no address of this machine: give one that `ip address` shows",
                         host);
    case EACCES:
      return fmt::format("port {} may not be opened ({}): choose one above 1023", port, cause);
    default:
      return fmt::format("cannot listen on {}: {}", format_endpoint(host, port), cause);
  }
}

OwnedFd open_socket(int family) {
  OwnedFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0)
    refuse(fmt::format("cannot make a socket: {}", std::generic_category().message(errno)));
  return fd;
}

/// 0, or errno.
int bind_and_listen(int fd, const SocketAddress& address) {
  if (::bind(fd, address.get(), address.size) != 0) return errno;
  return ::listen(fd, SOMAXCONN) == 0 ? 0 : errno;
}

}  // namespace

std::unique_ptr<Listener> Listener::tcp(asio::io_context& loop, const std::string& host,
                                        std::uint16_t port, OnSocket on_socket) {
  std::string error;
  const auto found = look_up(host, port, false, error);
  if (found.empty()) refuse(fmt::format("'{}' is no address to listen on: {}", host, error));
  const auto& address = found.front();
  auto fd = open_socket(address.family());
  // A head that was just stopped leaves closed connections behind, which hold its port for a
  // minute.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (const int failed = bind_and_listen(fd.get(), address))
    refuse(why_not_bound(host, port, failed));
  SocketAddress bound;
  ::getsockname(fd.get(), bound.get(), &bound.size);
  auto door = std::make_shared<Door>(loop, address.family(), std::move(fd), std::move(on_socket));
  return std::make_unique<SocketListener>(std::move(door), port_of(bound));
}

std::unique_ptr<Listener> Listener::abstract_unix(asio::io_context& loop, const std::string& name,
                                                  OnSocket on_socket) {
  const auto address = unix_address(name);
  auto fd = open_socket(AF_UNIX);
  if (const int failed = bind_and_listen(fd.get(), address)) {
    refuse(fmt::format("cannot listen on the unix socket '@{}': {}", name,
                       std::generic_category().message(failed)));
  }
  auto door = std::make_shared<Door>(loop, AF_UNIX, std::move(fd), std::move(on_socket));
  return std::make_unique<SocketListener>(std::move(door), std::uint16_t{0});
}

}  // namespace troupe::transport
