#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace troupe::transport {

/// How soon the end of a connection is noticed whose other host is gone without a word: cut off,
/// without power. A process that is merely stopped is not gone: the kernel of its host answers for
/// it.
struct Liveness {
  /// Of a connection on which nothing is under way; then the peer's host is asked.
  std::chrono::seconds idle{5};
  std::chrono::seconds interval{5};  ///< from one such question to the next
  int probes = 3;                    ///< so many without an answer: the host is gone
  /// What was sent is acknowledged within this, or the host is gone; looked at every `interval`.
  std::chrono::seconds unanswered{15};
};

/// The kernel looks after an idle TCP connection from now on; no effect on other sockets.
void keep_alive(int fd, const Liveness& liveness = {});

/// For how long the kernel at the other end of a TCP connection has acknowledged nothing, neither
/// data nor a question of keep_alive; none: it is no such connection.
std::optional<std::chrono::milliseconds> time_since_answer(int fd);

/// Whether the host at the other end of a TCP connection still acknowledges what is sent. The
/// kernel's keep-alive is silent while data is under way, and TCP_USER_TIMEOUT would also end the
/// connection to a process that is alive and reads nothing: one in a debugger. So the kernel is
/// asked. Belongs to the loop of its executor.
///
///   [quiet] --sent()--> [watches] --all is acknowledged--> [quiet]
///                           \--nothing was, for Liveness::unanswered--> `gone`, once
class UnansweredWatch {
 public:
  UnansweredWatch(const boost::asio::any_io_executor& executor, int fd, Liveness liveness,
                  std::function<void()> gone);

  /// Something was given to the socket. Costs nothing while it watches.
  void sent() {
    if (is_tcp_ && !watches_) begin();
  }
  void stop();

 private:
  enum class Look { AllAcknowledged, Waits, Gone };
  void begin();
  void on_timer();
  Look look() const;

  const int fd_;
  const Liveness liveness_;
  const bool is_tcp_;
  bool watches_ = false;
  boost::asio::steady_timer timer_;
  std::function<void()> gone_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::transport
