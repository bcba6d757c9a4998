#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "transport/handshake/handshake.hpp"

namespace troupe::transport {

/// How often to try a server that takes the connection and then says nothing (Denied::may_be_busy).
/// Every other refusal is final at once: wrong bytes, a wrong token, nobody there. Once it was
/// busy, an attempt that gets no connection counts as busy, too: those of its callers have filled
/// its queue.
struct Patience {
  int attempts = 3;  ///< at least, each within ClientOptions::timeout
  /// And, until so much time has run, further ones, one begun when the time of the one before is
  /// over, which doubles up to kLongestAttempt: a server that stands still is not called by many
  /// again and again.
  std::chrono::milliseconds time{0};
  static constexpr std::chrono::milliseconds kLongestAttempt{10'000};
  /// Asked before each further attempt with a line for the user ("<why>; trying again", and for how
  /// long where `time` says so); false: give up.
  std::function<bool(const std::string& line)> again;
};

/// connect() with patience: one of the two is called once, on the loop. What is denied at the end
/// says how often it was tried.
///
///     [attempt 1] --busy, again--> [attempt 2] --busy, again--> ... [the last one] --busy--> denied
///          `--- welcome --> accepted            `--- anything else --> denied
void connect_patiently(asio::io_context& loop, Endpoint to, ClientOptions options,
                       Patience patience, std::function<void(ConnectionPtr, Accepted)> accepted,
                       std::function<void(Denied)> denied);

}  // namespace troupe::transport
