#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "calls/channel/in_channel.hpp"
#include "calls/channel/out_channel.hpp"
#include "transport/connection.hpp"

namespace troupe::runtime {

/// The channels between this process and others of its machine: made once two of them talk much,
/// closed with either. Both sides watch the other's process by a pidfd: a socket's end is not seen
/// while some child of it holds the socket. Belongs to the loop.
///
///   caller                                          callee
///     channelOffer (memory, bell, eventfd)    ──▶   maps it
///                   ◀── channelReady (bell; or why not)
///     channelStart; from here on calls go     ──▶   attaches it behind the calls that came before
///     through the ring
class Channels {
 public:
  /// Calls to a process through its socket before a channel is offered.
  static constexpr int kTalksMuch = 8;
  /// After a turn that found much, how long the loop waits before it looks again instead of being
  /// told.
  static constexpr std::chrono::microseconds kRest{500};

  struct Callbacks {
    boost::asio::io_context& loop;
    Executor& executor;
    /// The next message to it, behind all that was sent before.
    std::function<void(ProcessId, transport::Outgoing&&)> send;
    /// An outcome that goes to a caller through its socket. The loop.
    std::function<void(ProcessId caller, std::uint64_t call, const Outcome&,
                       std::chrono::nanoseconds run_time, ReplyPlace kept)>
        send_outcome;
    /// The other process has ended, as the kernel says.
    std::function<void(ProcessId)> ended;
    /// A ring that is shared with it holds what neither side writes.
    std::function<void(ProcessId)> damaged;
    /// Calls may go through this channel from now on.
    std::function<void(const OutChannelPtr&)> opened;
  };
  explicit Channels(Callbacks callbacks);

  /// nullptr: none (yet).
  OutChannelPtr to(ProcessId process) const;
  /// There is a connection to this process now. Channels that are open outlive it.
  void connected(ProcessId process, const transport::ConnectionPtr& connection);
  void disconnected(ProcessId process, const transport::ConnectionPtr& connection);
  /// A call went to it through the socket.
  void talked(ProcessId process);
  /// An offer or the answer to it, whose descriptors are taken from the connection.
  void receive(const transport::ConnectionPtr& connection, ProcessId process,
               wire::Message::Reader message);
  /// The caller uses the channel that it has offered from here on.
  void started(ProcessId process);
  /// A reply that came through the socket to a call of a channel.
  void answer(ProcessId process, std::uint64_t call, Outcome outcome,
              std::chrono::nanoseconds run_time);
  /// Of a process that has ended; those to calls through its socket are not meant.
  void answer(ProcessId process, const std::vector<KeptReply>& replies);
  /// No more of it: what is in flight there is lost with `how`. `ended`: the process has, and is
  /// not merely out of reach.
  void lost(ProcessId process, const Failure& how, bool ended);
  /// Calls through its channel that have no answer.
  std::size_t in_flight(ProcessId process) const;

 private:
  enum class Stage { None, Offered, Open, Refused };
  struct Peer {
    std::weak_ptr<transport::Connection> connection;
    std::uint64_t life_number = 0;  // tells it from the one after a loss
    Stage stage = Stage::None;
    int talks = 0;
    std::weak_ptr<transport::Connection> offered_through;
    std::optional<ring::Segment> offered;
    OutChannelPtr out;
    InChannelPtr in;
    bool in_started = false;
    std::unique_ptr<boost::asio::posix::stream_descriptor> life;
  };

  void offer(Peer& peer);
  void ready(ProcessId process, const transport::ConnectionPtr& connection,
             const std::string& why_not);
  void offered(ProcessId process, const transport::ConnectionPtr& connection);
  std::string adopt(ProcessId process, const transport::ConnectionPtr& connection);
  void watch_life(ProcessId process, Peer& peer);
  std::function<void()> tell_damaged(ProcessId process, const Peer& peer);
  void open_wake();
  void wait_for_wake();
  void turn();

  Callbacks callbacks_;
  // An eventfd that callees write; made for the first of them.
  boost::asio::posix::stream_descriptor wake_;
  boost::asio::steady_timer rest_;
  bool resting_ = false;
  std::uint64_t lives_ = 0;
  std::unordered_map<ProcessId, Peer> peers_;
};

}  // namespace troupe::runtime
