#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "transport/handshake/handshake.hpp"

namespace troupe::transport {

struct AcceptLimits {
  /// Connections of callers that have not proven themselves, also of those that were refused and
  /// have not hung up. 0: a quarter of what this process may open, 16 to 1,024.
  std::size_t most_pending = 0;
  std::size_t most_lines = 5;  ///< of the log, in one period; and one that counts the others
  std::chrono::milliseconds log_period{10'000};
};

/// Says why callers were refused, and how often where that is too often to say each time. Belongs
/// to one loop.
///
///   [quiet] --refused--> [a period: most_lines are logged] --its end--> one line that counts the others, and a new period
///      ^                                                        |
///      '------------------- none was left out ------------------'
class RefusalLog {
 public:
  using Log = std::function<void(const std::string& line)>;
  /// `who` begins each line: "the object store ", or nothing. An empty `log`: nothing is said.
  RefusalLog(asio::io_context& loop, std::string who, AcceptLimits limits, Log log);
  void refused(const std::string& why);

 private:
  void begin_period();
  void end_period();

  const std::string who_;
  const AcceptLimits limits_;
  const Log log_;
  asio::steady_timer timer_;
  bool in_period_ = false;
  std::size_t lines_ = 0;
  std::size_t left_out_ = 0;
  std::string last_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

/// What stands between a listener and whoever it is for: runs the handshakes, and bounds what
/// callers cost who have not proven themselves. Where there are too many, the oldest connection is
/// closed for a new one: who is honest is done in milliseconds. Belongs to one loop; its end closes
/// them all, and nobody is told.
class Acceptor {
 public:
  using OnAccepted = std::function<void(ConnectionPtr, Accepted)>;

  Acceptor(asio::io_context& loop, std::string who, AcceptLimits limits, RefusalLog::Log log);
  ~Acceptor();

  void accept(Socket socket, ServerOptions options, OnAccepted accepted);
  std::size_t pending() const { return callers_.size(); }

 private:
  struct Pending {
    ConnectionPtr connection;
    std::weak_ptr<Handshake> handshake;
  };
  using Callers = std::list<Pending>;

  void make_room();
  void give_up_oldest();
  void denied(Callers::iterator caller, const Denied& why);

  const std::size_t most_;
  Callers callers_;  // the oldest first
  RefusalLog refusals_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::transport
