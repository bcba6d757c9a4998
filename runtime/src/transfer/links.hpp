#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ids/ids.hpp"
#include "store/types.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::transfer {

using runtime::NodeId;

struct LinksOptions {
  transport::ClientOptions as;  ///< how it proves itself
  /// Before a node is tried again; then twice as long each time.
  std::chrono::milliseconds first_wait{100};
  std::chrono::milliseconds longest_wait{10'000};  ///< of those
  std::size_t most_listed =
      std::size_t{1} << 20U;  ///< frees that a node owes an answer to; of more the oldest are
                              ///< given up. 32 bytes each
};

/// Tells other nodes what was freed there. A free stays listed until its node has acknowledged it,
/// and all that are listed are sent again on the next connection where one breaks: what was freed
/// twice is freed. The connection is made with the first free, and kept. Belongs to the loop.
///
///             .------- broken, frees are listed: after a while -------.
///             v                                                       |
///   free() [connecting] --accepted--> [open: each free is sent] ------+--broken, none is listed--> [none]
///            |     ^
///         no way   '-- after a while, longer each time
///            v     |
///          [waiting] --node_ended(), or the jobs of all that is listed have--> [none]
class Links {
 public:
  /// Is to call node_ended() once that node has ended. Called within free(), or from the loop.
  using Watch = std::function<void(NodeId node)>;

  Links(boost::asio::io_context& loop, LinksOptions options, Watch watch)
      : loop_(loop), options_(std::move(options)), watch_(std::move(watch)) {}
  ~Links();

  /// Nothing where `at` names no node.
  void free(const store::NodeAddress& at, store::JobId job, store::ObjectId object);
  /// Nothing of it is left to be freed.
  void node_ended(NodeId node);
  /// node_ended() was called: for good, as a node that comes back has another number.
  bool has_ended(NodeId node) const { return ended_.contains(node); }
  /// Nothing of the job is left to be freed: nodes hear of it themselves.
  void job_ended(store::JobId job);

  std::size_t listed() const;  ///< over all nodes
  std::size_t nodes() const { return links_.size(); }

 private:
  struct Free {
    std::uint64_t number;
    store::JobId job;
    store::ObjectId object;
  };
  struct Link {
    Link(boost::asio::io_context& loop, store::NodeAddress at, std::chrono::milliseconds first_wait)
        : to(std::move(at)), timer(loop), wait(first_wait) {}
    const store::NodeAddress to;
    boost::asio::steady_timer timer;
    std::chrono::milliseconds wait;  // the next one
    std::uint64_t attempt = 0;       // a later one, also of a later link to the node, is another
    transport::ConnectionPtr connection = nullptr;
    std::deque<Free> listed = {};  // in the order of their numbers
    std::uint64_t last_number = 0;
    bool watched = false;
    bool overflowed = false;
  };
  using LinkAt = std::map<NodeId, Link>::iterator;

  void connect(Link& link);
  void opened(Link& link, const transport::ConnectionPtr& connection);
  void acknowledged(Link& link, std::uint64_t number);
  /// The connection is gone, or was not to be had.
  void failed(Link& link, const std::string& why);
  void end(LinkAt link);
  /// Calls it with the link that made this attempt, unless it was given up by then.
  template <class Then>
  auto unless_over(const Link& link, Then then);

  boost::asio::io_context& loop_;
  const LinksOptions options_;
  const Watch watch_;
  std::uint64_t last_attempt_ = 0;
  std::map<NodeId, Link> links_;
  std::set<NodeId> ended_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::transfer
