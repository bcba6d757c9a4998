#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/handshake/handshake.hpp"
#include "transport/socket/resolve.hpp"

namespace troupe::transport {

/// "127.0.0.1:7420", "unix socket @name", for messages.
std::string name_of(const Endpoint& to);

struct DialFailure {
  std::string why;
  /// Nothing of the host was seen, not even that nothing listens there.
  bool unreachable = false;
  /// The host says so.
  bool nobody_listens = false;
};

/// Opens one connection: the name is looked up, then its addresses are tried in order. It has no
/// deadline of its own and can be dropped at any time.
///
///     [look-up] --> [trying address i] --> connected
///         `--- no address --v--- none left --> failed
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  using Failed = std::function<void(DialFailure)>;

  /// One of the two is called once, from the loop. `nobody_there` is advice for where nothing
  /// listens.
  Dial(asio::io_context& loop, Endpoint to, std::string nobody_there,
       std::function<void(Socket)> connected, Failed failed);
  void start();
  /// What it is doing, for a message where time is up.
  std::string progress() const;

 private:
  void try_next();
  void on_writable();
  void failed_with(int error);
  std::string describe(int error) const;

  asio::io_context& loop_;
  Endpoint to_;
  std::string nobody_there_;
  std::function<void(Socket)> connected_;
  Failed failed_;
  Resolver resolver_;
  bool resolved_ = false;
  std::vector<SocketAddress> addresses_;
  std::size_t next_ = 0;
  Socket socket_;
  int error_ = 0;  // of the address that says most
};

}  // namespace troupe::transport
