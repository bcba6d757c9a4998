#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "transport/peer_silence.hpp"
#include "transport/stall_detector.hpp"

namespace troupe::runtime {

/// A driver's beats to its head, each of which the head echoes, and the watch over these echoes.
/// The time that this process itself stood still, in a debugger say, is not held against the head.
/// Belongs to the loop.
class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;
  struct Callbacks {
    std::function<void(std::uint64_t beat)> send;
    /// There was no echo for `notice`, and then there was one again.
    std::function<void()> fell_silent, speaks_again;
    /// There was no echo for `limit`; called once, no beat follows.
    std::function<void()> gone;
  };

  Heartbeat(boost::asio::io_context& loop, std::chrono::milliseconds period,
            std::chrono::milliseconds notice, std::chrono::milliseconds limit, Callbacks callbacks)
      : period_(period),
        silence_(notice, limit),
        callbacks_(std::move(callbacks)),
        stall_detector_(2 * period),
        timer_(loop) {}

  void start();
  void echoed();
  void stop() { timer_.cancel(); }

 private:
  void beat();

  const std::chrono::milliseconds period_;
  transport::PeerSilence silence_;
  const Callbacks callbacks_;
  std::uint64_t beats_ = 0;
  transport::StallDetector stall_detector_;
  boost::asio::steady_timer timer_;
};

}  // namespace troupe::runtime
