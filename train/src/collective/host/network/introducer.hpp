#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "collective/call.hpp"
#include "collective/host/network/socket.hpp"

namespace troupe::train {

/// What only the ranks of the gang can know: rank 0 of the gang makes it for the communicator
/// `name`.
std::string gang_secret(Patience& patience, const std::string& name);

/// Makes connections between ranks of different nodes: one publishes in the rendezvous where it
/// listens, the other connects, and both prove by HMAC-SHA256 over both sides' nonces that they
/// know a secret that only the gang's rendezvous holds, and mean the same connection. Strangers are
/// turned away. Waits throw TimedOut naming the rank that did not come, what `stop` throws,
/// GangBroken. Used by the communicator's calling thread.
class Introducer {
 public:
  Introducer(Patience& patience, std::string secret, const std::function<void()>& stop)
      : patience_(patience), secret_(std::move(secret)), stop_(stop) {}

  /// The connection called `key`, whose other side, `rank`, has published place_of(its listener)
  /// under it.
  Socket reach(const std::string& key, int rank);
  /// Its other side.
  Socket receive(const Socket& listener, const std::string& key, int rank);

 private:
  Socket attempt(const std::string& address, int port, const std::string& key, int rank);
  /// Both sides run this on a new connection. -> whether the other one is who it should be.
  bool hold(const Socket& socket, std::string_view my_role, std::string_view their_role);
  void pause(int missing);

  Patience& patience_;
  const std::string secret_;
  const std::function<void()>& stop_;
};

}  // namespace troupe::train
