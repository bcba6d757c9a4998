#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "store/types.hpp"
#include "transport/handshake.hpp"

namespace troupe::transfer {

/// Connections of this node to others, for messages that want no answer: made with the first, kept, and made again where
/// they broke. What is for a node that cannot be reached is dropped: it has ended, and what it had with it. Belongs to the
/// loop.
///
///     [none] --send()--> [connecting: messages wait] --> [open] --broken--> [none]
///                              `--no way--> [none]
class Links {
 public:
  Links(boost::asio::io_context& loop, transport::ClientOptions options) : loop_(loop), options_(std::move(options)) {}
  ~Links();

  void send(const store::NodeAddress& to, transport::Outgoing&& message);

 private:
  struct Link {
    std::uint64_t number = 0;  // a later link to the same node is another
    transport::ConnectionPtr connection;
    std::vector<transport::Outgoing> waiting;
  };
  void connect(const store::NodeAddress& to, std::uint64_t number);
  /// nullptr: it was given up.
  Link* find(std::uint32_t node, std::uint64_t number);

  boost::asio::io_context& loop_;
  const transport::ClientOptions options_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint32_t, Link> links_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::transfer
