#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "transport/socket/socket.hpp"

namespace troupe::transport {

/// What a host and port stand for, by the machine's resolver. Blocks, for seconds where a name
/// server is silent. `error` says why the list is empty.
std::vector<SocketAddress> look_up(const std::string& host, std::uint16_t port, bool numbers_only,
                                   std::string& error);

/// The same without blocking the loop. A number is answered without a thread; for a name, a thread
/// of its own looks it up, which nobody waits for: dropping the Resolver is enough to give up.
class Resolver {
 public:
  using Done = std::function<void(std::vector<SocketAddress>, const std::string& error)>;

  explicit Resolver(asio::io_context& loop);
  ~Resolver();
  /// `done` is called once, from the loop.
  void start(const std::string& host, std::uint16_t port, Done done);

 private:
  struct Pending;
  asio::io_context& loop_;
  std::shared_ptr<Pending> pending_;
};

}  // namespace troupe::transport
