#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "transport/handshake/handshake.hpp"

namespace troupe::head {

struct HeadOptions {
  std::string host = "127.0.0.1";  ///< the one address that it listens on
  std::uint16_t port = 0;          ///< 0: any free one
  /// Not empty: it listens there instead, and is reached from this machine alone.
  std::string unix_name;
  transport::Secret token{};
  std::string directory;  ///< of its identity; empty: none is kept
  /// Without a heartbeat a node is taken for lost, also where its connection has broken meanwhile.
  std::chrono::milliseconds node_silence{10'000};
  /// How long what only a node that has left could hold waits for it to come back; at 0 it is
  /// refused at once.
  std::chrono::milliseconds rejoin_patience{60'000};
  /// Without a heartbeat a driver over TCP is taken for gone, though its machine answers: so long
  /// may it stand in a debugger.
  std::chrono::milliseconds driver_silence{std::chrono::hours{1}};
  std::function<void(const std::string&)> log;  ///< a line for people; empty: silent
};

/// The one control process of a cluster: who is in it, what runs where, names. Never on the path of
/// a call. Everything that happens becomes an event of the pure scheduler::State; its effects
/// become messages to nodes and processes. Lives on one loop, which waits for no disk.
///
///   [new] --constructed: listening--> [serving] --stop()--> [stopping: nodes and drivers told] --all gone or 3 s--> [stopped]
class Head {
 public:
  /// Throws Refused where the address cannot be had or the identity cannot be read.
  Head(boost::asio::io_context& loop, HeadOptions options);
  ~Head();

  std::uint16_t port() const;  ///< 0: a unix socket
  const std::string& cluster() const;
  /// Called when an administrator asks the cluster to stop; the owner then calls stop().
  void on_stop_asked(std::function<void()> asked);
  /// Called whenever the last driver has gone (a private cluster ends then).
  void on_last_driver_gone(std::function<void()> gone);
  void stop(const std::string& why, std::function<void()> stopped);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::head
