#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "transport/handshake/handshake.hpp"

namespace troupe::head {

/// Whether the process of a node lives whose connection to the head has broken: its object store
/// listens for as long as the process lives, and the connection to that ends with it. Belongs to
/// the head's loop; dropped, it asks no more.
///
///   [calling] --accepted--> [held: it lives] --the connection ends, a pause--> [calling]
///       ^ |----nothing listens there--> [gone], once
///       | `----no answer, or another one---.
///       `------------a pause---------------'
///
/// A firewall that refuses a connection looks like a process that has ended.
class NodeProbe : public std::enable_shared_from_this<NodeProbe> {
 public:
  /// Short: a process that is being ended may still accept, and is gone a moment later.
  static constexpr std::chrono::milliseconds kPause{20};
  static constexpr int kShortTries = 10;
  static constexpr std::chrono::milliseconds kPauseUnanswered{1000};

  struct Callbacks {
    std::function<void()> lives;  ///< or nobody knows; once at most
    std::function<void()> gone;   ///< the process has ended; may drop the probe
  };

  NodeProbe(boost::asio::io_context& loop, transport::Endpoint node,
            transport::ClientOptions client, Callbacks callbacks);
  ~NodeProbe();
  void start();

 private:
  void on_denied(const transport::Denied& denied);
  void hold(transport::ConnectionPtr connection);
  void start_after(std::chrono::milliseconds pause);
  void say_that_it_lives();

  boost::asio::io_context& loop_;
  const transport::Endpoint node_;
  const transport::ClientOptions client_;
  Callbacks callbacks_;
  transport::ConnectionPtr held_;
  boost::asio::steady_timer pause_;
  int tries_ = 0;  // that came to nothing in another way than by silence
};

}  // namespace troupe::head
