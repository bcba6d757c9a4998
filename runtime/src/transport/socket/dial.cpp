#include "transport/socket/dial.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include <troupe/errors.hpp>

namespace troupe::transport {

namespace {

/// Nothing of the other host was seen, not even that it refuses: it may be back in a moment. The last
/// three are what routes and firewalls of this one answer.
bool is_unreachable(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN ||
         error == ETIMEDOUT || error == EACCES || error == EPERM || error == EINVAL;
}

}  // namespace

std::string name_of(const Endpoint& to) {
  return to.host.empty() ? fmt::format("unix socket @{}", to.unix_name)
                         : format_endpoint(to.host, to.port);
}

Dial::Dial(asio::io_context& loop, Endpoint to, std::string nobody_there,
           std::function<void(Socket)> connected, Failed failed)
    : loop_(loop),
      to_(std::move(to)),
      nobody_there_(std::move(nobody_there)),
      connected_(std::move(connected)),
      failed_(std::move(failed)),
      resolver_(loop),
      socket_(loop) {}

void Dial::start() {
  if (to_.host.empty()) {
    asio::post(loop_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->resolved_ = true;
      try {
        self->addresses_.push_back(unix_address(self->to_.unix_name));
      } catch (const Error& error) {
        return self->failed_({.why = error.what()});
      }
      self->try_next();
    });
    return;
  }
  resolver_.start(
      to_.host, to_.port,
      [weak = weak_from_this()](std::vector<SocketAddress> found, const std::string& error) {
        const auto self = weak.lock();
        if (!self) return;
        self->resolved_ = true;
        if (found.empty()) {
          return self->failed_(
              {.why = fmt::format("the name '{}' does not resolve: {}: check its spelling, or give "
                                  "the IP address",
                                  self->to_.host, error)});
        }
        self->addresses_ = std::move(found);
        self->try_next();
      });
}

void Dial::try_next() {
  const auto& address = addresses_[next_++];
  OwnedFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return failed_with(errno);
  const int error = ::connect(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
  if (error != 0 && error != EINPROGRESS) return failed_with(error);
  boost::system::error_code not_watched;
  socket_ = adopt(loop_, address.family(), std::move(fd), not_watched);
  if (not_watched) return failed_with(not_watched.value());
  socket_.async_wait(Socket::wait_write,
                     [weak = weak_from_this()](boost::system::error_code stopped) {
                       const auto self = weak.lock();
                       if (self && stopped != asio::error::operation_aborted) self->on_writable();
                     });
}

void Dial::on_writable() {
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return failed_with(error);
  connected_(std::move(socket_));
}

void Dial::failed_with(int error) {
  // Of "localhost" as ::1 and 127.0.0.1, a refusal says more than an address family that is not
  // there.
  if (error_ == 0 || error == ECONNREFUSED) error_ = error;
  if (next_ < addresses_.size()) return try_next();
  failed_({.why = describe(error_),
           .unreachable = is_unreachable(error_),
           .nobody_listens = error_ == ECONNREFUSED});
}

std::string Dial::describe(int error) const {
  const auto where = name_of(to_);
  const auto why = std::generic_category().message(error);
  switch (error) {
    case ECONNREFUSED:
      return fmt::format("nothing listens on {}: {}", where, nobody_there_);
    case EAGAIN:  // of a unix socket: its queue is full
      return fmt::format("{} is overloaded: too many callers wait there; try again", where);
    case EMFILE:
    case ENFILE:
      return fmt::format("cannot connect to {}: {}: raise the limit of open files (ulimit -n)",
                         where, why);
    default:
      return fmt::format("{} cannot be reached: {}: check the address and the network in between",
                         where, why);
  }
}

std::string Dial::progress() const {
  return resolved_
             ? fmt::format(
                   "{} does not answer: check the address, and the network and firewalls in "
                   "between",
                   name_of(to_))
             : fmt::format(
                   "the name '{}' does not resolve: no name server answers: give the IP address",
                   to_.host);
}

}  // namespace troupe::transport
