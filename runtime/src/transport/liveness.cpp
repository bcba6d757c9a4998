#include "transport/liveness.hpp"

#include <utility>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace troupe::transport {
namespace {

/// A process that reads nothing is asked rarely whether it does now: one question that is lost says
/// nothing yet.
constexpr int kLostProbes = 2;

bool is_tcp(int fd) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  return ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
         protocol == IPPROTO_TCP;
}

void set(int fd, int option, std::chrono::seconds value) {
  const int seconds = static_cast<int>(value.count());
  ::setsockopt(fd, IPPROTO_TCP, option, &seconds, sizeof seconds);
}

}  // namespace

void keep_alive(int fd, const Liveness& liveness) {
  if (!is_tcp(fd)) return;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  set(fd, TCP_KEEPIDLE, liveness.idle);
  set(fd, TCP_KEEPINTVL, liveness.interval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &liveness.probes, sizeof liveness.probes);
}

std::optional<std::chrono::milliseconds> time_since_answer(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (!is_tcp(fd) || ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    return std::nullopt;
  return std::chrono::milliseconds(info.tcpi_last_ack_recv);
}

UnansweredWatch::UnansweredWatch(const boost::asio::any_io_executor& executor, int fd,
                                 Liveness liveness, std::function<void()> gone)
    : fd_(fd), liveness_(liveness), is_tcp_(is_tcp(fd)), timer_(executor), gone_(std::move(gone)) {}

void UnansweredWatch::stop() {
  watches_ = true;  // for good: nothing more is sent
  timer_.cancel();
}

void UnansweredWatch::begin() {
  watches_ = true;
  timer_.expires_after(liveness_.interval);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) on_timer();
  });
}

void UnansweredWatch::on_timer() {
  switch (look()) {
    case Look::AllAcknowledged:
      watches_ = false;
      return;
    case Look::Waits:
      return begin();
    case Look::Gone:
      return gone_();
  }
}

UnansweredWatch::Look UnansweredWatch::look() const {
  int waiting = 0;
  if (::ioctl(fd_, SIOCOUTQ, &waiting) != 0 || waiting == 0) return Look::AllAcknowledged;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Look::AllAcknowledged;
  // Where the peer has no room for more, nothing is unacknowledged: then only questions go out.
  const bool in_vain =
      info.tcpi_unacked > 0 ? info.tcpi_retransmits > 0 : info.tcpi_probes >= kLostProbes;
  const bool silent = std::chrono::milliseconds(info.tcpi_last_ack_recv) >= liveness_.unanswered;
  return in_vain && silent ? Look::Gone : Look::Waits;
}

}  // namespace troupe::transport
