#pragma once

#include <functional>
#include <string>

#include "transport/handshake/handshake.hpp"

namespace troupe::transport {

/// How often to try a server that takes the connection and then says nothing (Denied::may_be_busy).
/// Every other refusal is final at once: wrong bytes, a wrong token, nobody there.
struct Patience {
  int attempts = 3;  ///< each within ClientOptions::timeout
  /// Asked before each further attempt with a line for the user ("<why>; trying again"); false:
  /// give up.
  std::function<bool(const std::string& line)> again;
};

/// connect() with patience: one of the two is called once, on the loop. What is denied at the end
/// says how often it was tried.
///
///     [attempt 1] --busy, again--> [attempt 2] --busy, again--> ... [attempt n] --busy--> denied
///          `--- welcome --> accepted            `--- anything else --> denied
void connect_patiently(asio::io_context& loop, Endpoint to, ClientOptions options,
                       Patience patience, std::function<void(ConnectionPtr, Accepted)> accepted,
                       std::function<void(Denied)> denied);

}  // namespace troupe::transport
