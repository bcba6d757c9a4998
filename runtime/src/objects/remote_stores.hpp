#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "store/client/client.hpp"
#include "transfer/links.hpp"
#include "transfer/pull.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::runtime {

/// The bytes of a stored value that are here, and what keeps them here.
struct FetchedView {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};
using OnFetched = std::function<void(std::variant<FetchedView, store::Refusal>)>;

/// Stored values for a process on whose machine there is no node: each is brought into memory of
/// its own when it is looked at, and given up when nobody does. Belongs to the loop.
class RemoteStores {
 public:
  /// `as`: how it proves itself to nodes.
  RemoteStores(boost::asio::io_context& loop, const transport::ClientOptions& as,
               transfer::Links::Watch watch)
      : loop_(loop), as_(as), watch_(watch), links_(loop, {.as = as}, std::move(watch)) {}

  void view(const store::Wanted& wanted, const OnFetched& done);
  void free(const store::Wanted& place);
  void node_ended(NodeId node);
  /// What is under way is given up: whoever waits for it is told.
  void leave();

 private:
  void note(const std::shared_ptr<transfer::Pull>& pull);

  boost::asio::io_context& loop_;
  const transport::ClientOptions as_;
  const transfer::Links::Watch watch_;
  std::vector<std::weak_ptr<transfer::Pull>> pulls_;  // those under way, and some that are over
  std::size_t sweep_at_ = 64;
  transfer::Links links_;
};

}  // namespace troupe::runtime
