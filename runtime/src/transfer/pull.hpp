#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ids/ids.hpp"
#include "store/types.hpp"
#include "transfer/chunks.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/silence_timer.hpp"

namespace troupe::transfer {

using runtime::NodeId;

struct PullOptions {
  /// Role node with the token's key; a driver that has no node: role driver.
  transport::Caller self;
  transport::Secret key{};
  /// This node, to which others may be sent on; none: they may not.
  store::NodeAddress receiver = {};
  std::chrono::milliseconds connect{2'000};
  /// Without a byte the connection is taken for broken, in time that this process runs.
  std::chrono::milliseconds silence{10'000};
  /// Without a byte of the object, though the other side says to wait; in such time, too.
  std::chrono::milliseconds stall{60'000};
  /// Before the first further try; twice as long before each one after it.
  std::chrono::milliseconds pause{100};
  int retries = 3;  ///< of the node where it was written
  /// How long that node may be out of reach, in time that this process runs: a link that is cut for
  /// a moment loses nothing. Longer than it takes the head to call a node lost, which ended() says
  /// sooner.
  std::chrono::milliseconds unreachable{30'000};
  std::chrono::milliseconds longest_pause{1'000};  ///< between tries meanwhile
  /// The node cannot be reached: is to call ended() once the head says that it is lost. Once for
  /// each pull, on its loop.
  std::function<void(NodeId node)> watch = {};
};

/// What a fetch ends with once the head says that the node where it was written is lost.
store::Refusal origin_gone(const store::ObjectId& object, std::uint64_t bytes,
                           const store::NodeAddress& origin);

/// Brings an object of another node into memory. Lives on one loop, every call on its thread; holds
/// itself until it is done or cancelled.
///
///                       .----- sent on: to that node ----.
///                       v                                |
///     [pausing] --> [connecting] --request sent--> [receiving] --the last chunk--> done
///        ^              |                                |
///        |              v no way, broken, silent, changed, not had there any more
///        |              |         (out of reach: again and again, for so long as a cut link may last)
///        |              |
///        '--------------'--> at most `retries` times; from a node that it was sent on to it comes back to where the
///                            object was written, which then serves it itself. Else done, with a refusal
///
/// It goes on from what has arrived and was verified. Where who wrote it refuses, that is the end.
class Pull : public std::enable_shared_from_this<Pull> {
 public:
  struct Wanted {
    store::ObjectId object = {};
    store::JobId job{};
    store::NodeAddress at = {};  ///< where it was written
    bool warm = false;           ///< the memory for it has its pages here already
  };
  using OnProgress = std::function<void(std::uint64_t verified)>;  ///< from the first byte on
  using OnDone = std::function<void(std::optional<store::Refusal>)>;

  /// `into`: as large as the object; nobody else reads or writes it beyond what OnProgress said.
  Pull(boost::asio::io_context& loop, Wanted wanted, std::span<std::byte> into, PullOptions options,
       OnProgress on_progress, OnDone on_done);
  void start();
  /// The node where it was written is lost: it can come from whom it was sent on to, and from nobody
  /// else.
  void ended();
  /// Over, with this.
  void give_up(store::Refusal why) { finish(std::move(why)); }
  NodeId origin() const { return wanted_.at.node; }
  /// Nothing is called and nothing is written from now on.
  void cancel();

 private:
  using Clock = std::chrono::steady_clock;
  using Kind = store::Refusal::Kind;

  void ask(store::NodeAddress whom);
  void connected(const transport::ConnectionPtr& connection);
  void denied(const transport::Denied& denied);
  void wait_to_read();
  void read_turn();
  void took(ChunkReader::Result result);
  void on_message(std::span<const capnp::word> segment);
  void sent_on(store::NodeAddress to);
  void refused(const store::Refusal& why);
  void failed(Kind kind, const std::string& why);
  void watch_origin();
  bool may_come_back();
  void within_reach();
  void finish_without_origin();
  void try_again(std::chrono::milliseconds pause);
  void expect_a_byte();
  void expect_bytes_of_object();
  void hang_up();
  void finish(std::optional<store::Refusal> refusal);
  bool asks_origin() const { return asked_.node == wanted_.at.node; }
  std::string progress() const;

  boost::asio::io_context& loop_;
  const Wanted wanted_;
  const std::span<std::byte> into_;
  const PullOptions options_;
  OnProgress on_progress_;
  OnDone on_done_;
  boost::asio::steady_timer pause_;
  transport::SilenceTimer silence_, stall_;  // of this connection
  std::optional<transport::Socket> socket_;  // while it receives
  std::optional<ChunkReader> reader_;
  store::NodeAddress asked_;
  std::uint64_t verified_ = 0;
  std::uint64_t attempt_ = 0;  // of the connection; what belongs to an earlier one is late
  NodeId failed_node_{};       // that it was sent on to
  int failures_ = 0;           // of the origin
  int hops_ = 0;               // since the origin
  int unreached_ = 0;          // tries in a row in which the origin was out of reach
  transport::SilenceTimer out_of_reach_;  // runs since the first of them
  bool is_out_of_reach_ = false, is_for_long_ = false;
  bool watched_ = false;          // the origin's end is heard of
  bool origin_gone_ = false;      // it has ended
  int returns_ = 0;               // to the origin
  Clock::time_point progressed_;  // bytes of the object were verified, on any connection
  bool done_ = false;
};

}  // namespace troupe::transfer
