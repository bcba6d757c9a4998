#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "calls/channel/channels.hpp"
#include "calls/deaths/death.hpp"
#include "calls/head_link.hpp"
#include "calls/peers/known_deaths.hpp"
#include "calls/peers/peer_link.hpp"
#include "calls/peers/requests_in_flight.hpp"
#include "objects/exports.hpp"
#include "transport/handshake/handshake.hpp"

namespace kj {
class Exception;
}

namespace troupe::runtime {

/// For the handshake of two processes of one job. Longer than with a head: that one of them lives
/// is known from its node, and hundreds that start at once share a few cores.
inline constexpr std::chrono::seconds kPeerHandshake{10};

/// The other processes of the same job that run user code, and the requests in flight to them.
/// Messages to a process go through its link, which outlives connections: only the death of a
/// process, as the head confirms it, ends what is in flight there and forgets the refs that it
/// held. Belongs to the loop.
///
///   [linked] --no connection--> [asking the head how it died] --"it lives"--> [linked]: the link connects anew
///      |                                    '--it died--.
///      |--died()--> [dying: its last words are read] ---+--> [dead: all is erased but how it died]
///      '--not reached for long: calls in flight fail, and refs stay--> [linked]
class Peers {
 public:
  struct Callbacks {
    transport::asio::io_context& loop;
    AddressPtr self;
    JobId job{};
    transport::Secret job_key{};
    std::string cluster;
    HeadLink& head;
    Exports& exports;
    Executor& executor;
    /// A message that asks something of this process.
    std::function<void(ProcessId caller, wire::Message::Reader)> on_request;
    /// The outcome of a call that came through a channel, for its caller's socket.
    std::function<void(ProcessId caller, std::uint64_t call, const Outcome&,
                       std::chrono::nanoseconds run_time, ReplyPlace kept)>
        send_outcome;
    /// Nothing more comes from it.
    std::function<void(ProcessId)> on_lost;
    /// Calls may go through this channel from now on.
    std::function<void(const OutChannelPtr&)> on_channel;
  };
  using Fill = std::function<void(wire::Message::Builder, std::uint64_t id)>;
  using Done = RequestsInFlight::Done;
  /// How long what a process sent before its end is waited for: its socket's end is not seen while
  /// a child of it lives.
  static constexpr std::chrono::seconds kLastWords{1};
  /// Bytes that wait to be received by one process, above which nothing more is asked of it.
  static constexpr std::size_t kMostKept = transport::Limits{}.outbox_bytes;
  /// After the first message that is not acknowledged, how long an acknowledgement may take.
  static constexpr std::chrono::milliseconds kAckPause{100};

  explicit Peers(Callbacks callbacks);

  /// Sends what `fill` writes; `done` is called once with the answer, or with how the process died.
  std::uint64_t request(const AddressPtr& to, const Fill& fill, Done done);
  /// Sends something that has no answer; lost with the process.
  void send(const AddressPtr& to, const Fill& fill);
  /// Answers a process that has asked something, through whichever connection there will be.
  /// `bytes`: about how many. `kept`: where the executor has it in its log. False where the process
  /// has ended: then `fill` is not called.
  bool answer_to(ProcessId process, std::size_t bytes,
                 const std::function<void(wire::Message::Builder)>& fill, ReplyPlace kept = 0);
  /// Calls `done` once what was answered is written to the process's socket, or need not or cannot
  /// be (PeerLink::write_out).
  void write_out(ProcessId process, std::function<void()> done);
  /// A process has connected to this one.
  void adopt(const transport::ConnectionPtr& connection, ProcessId caller);
  /// The head knows that the process has ended. What it sent before still counts.
  void died(ProcessId process, const Death& death);
  /// This process has, or has had, to do with it.
  bool is_known(ProcessId process) const { return peers_.contains(process); }
  void close();
  /// The cluster ends for this process: all others are lost, and whatever is asked of them fails.
  void end(const Failure& why);
  /// What it has sent may still arrive.
  bool may_answer(ProcessId process) const { return peers_.contains(process); }
  bool has_died(ProcessId process) const { return deaths_.find(process) != nullptr; }
  Channels& channels() { return channels_; }
  const Channels& channels() const { return channels_; }

 private:
  struct Peer {
    std::shared_ptr<PeerLink> link;
    RequestsInFlight in_flight;
    bool asking = false;
    bool ended_here = false;                                    // as this machine's kernel says
    std::unique_ptr<transport::asio::steady_timer> last_words;  // while it is dying
    std::optional<Death> dying;
  };

  PeerLink::Callbacks link_callbacks();
  Peer* find(ProcessId process);
  Peer& peer(ProcessId process);
  /// nullptr: it may be asked.
  const Failure* why_gone(ProcessId process);
  void dial(const AddressPtr& to, const PeerLink::Opened& opened, const PeerLink::Denied& denied);
  void lost(ProcessId process, const Death& death, bool confirmed);
  void unreachable(ProcessId process, const std::string& why);
  void stuck(ProcessId process, const std::string& why);
  void close_channels(ProcessId process, const std::string& why);
  void damaged(ProcessId process);
  void broken(ProcessId process, const std::string& why);
  void ask_fate(ProcessId process, const std::string& symptom);
  void post(ProcessId to, transport::Outgoing&& message);
  void deliver(ProcessId process, wire::Message::Reader message);
  void dispatch(ProcessId process, wire::Message::Reader message);
  void refuse(ProcessId process, wire::Message::Reader message, const std::string& why);
  void answer(ProcessId process, std::uint64_t id, Outcome outcome,
              std::chrono::nanoseconds run_time = {});
  void wait_for_last_words(ProcessId process, Peer& peer);
  void acknowledge_soon();
  Outcome read(wire::Outcome::Reader from);
  Outcome read(wire::RendezvousReply::Reader from);

  Callbacks callbacks_;
  Channels channels_;
  const PeerLink::Callbacks link_callbacks_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<ProcessId, Peer> peers_;
  KnownDeaths deaths_;
  std::optional<Failure> ended_;
  bool acks_owed_ = false;
  transport::asio::steady_timer ack_timer_;
};

}  // namespace troupe::runtime
