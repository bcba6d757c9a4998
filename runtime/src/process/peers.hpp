#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "process/direct/channels.hpp"
#include "process/exports.hpp"
#include "process/head_link.hpp"
#include "transport/handshake.hpp"

namespace troupe::process {

/// For the handshake of two processes of one job. Longer than with a head: that one of them lives is known from its node,
/// and hundreds that start at once share a few cores.
inline constexpr std::chrono::seconds kPeerHandshake{10};

/// The connections from this process to others that run user code of the same job, and the requests in flight on them.
/// Belongs to the loop. One connection per process keeps a caller's order.
///
///   [connecting] --accepted--> [open] --closed--> [asking the head how it died] --answer--> [dead]
///        \------ refused ------------/ | \------------^                        \--- "it lives" --> forgotten: connects anew
///                                      \--died()--> [dying: its last words are read] --closed, kLastWords--> [dead]
class Peers {
 public:
  struct Ways {
    transport::asio::io_context& loop;
    AddressPtr self;
    std::uint64_t job = 0;
    transport::Secret job_key{};
    std::string cluster;
    HeadLink& head;
    Exports& exports;
    Executor& executor;
    /// A message that asks something of this process.
    std::function<void(const transport::ConnectionPtr&, ProcessId caller, wire::Message::Reader)> on_request;
    /// The outcome of a call that came through a channel, for its caller's socket.
    std::function<void(ProcessId caller, std::uint64_t call, const Outcome&, std::chrono::nanoseconds run_time)>
        send_outcome;
    /// Nothing more comes from it.
    std::function<void(ProcessId)> on_lost;
    /// Calls may go through this channel from now on.
    std::function<void(const OutChannelPtr&)> on_channel;
  };
  using Fill = std::function<void(wire::Message::Builder, std::uint64_t id)>;
  /// `lost`: there is no answer, and this is how far the process had come with it; the outcome is then how it ended.
  using Done = std::function<void(Outcome, std::optional<Progress> lost, std::chrono::nanoseconds run_time)>;
  /// How long what a process sent before its end is waited for: its socket's end is not seen while a child of it lives.
  static constexpr std::chrono::seconds kLastWords{1};

  explicit Peers(Ways ways);

  /// Sends what `fill` writes; `done` is called once with the answer, or with how the process died.
  std::uint64_t request(const AddressPtr& to, const Fill& fill, Done done);
  /// Sends something that has no answer; lost with the process.
  void send(const AddressPtr& to, const Fill& fill);
  /// A process has connected to this one.
  void adopt(const transport::ConnectionPtr& connection, ProcessId caller);
  /// The head knows that the process has ended. What it sent before still counts.
  void died(ProcessId process, const Death& death);
  /// This process has, or has had, to do with it.
  bool is_known(ProcessId process) const { return peers_.contains(process); }
  void close();
  /// As lost(), of all of them.
  void end(const Failure& why);
  /// The connection to it, if there is one; nullptr: none.
  transport::ConnectionPtr connection(ProcessId process) const;
  /// What it has sent may still arrive.
  bool may_answer(ProcessId process) const;
  Channels& channels() { return channels_; }
  const Channels& channels() const { return channels_; }

 private:
  struct Peer {
    AddressPtr address;
    transport::ConnectionPtr connection;                                // nullptr while connecting, and once lost
    std::vector<std::pair<std::uint64_t, transport::Outgoing>> queued;  // with the id of the request; 0: none
    std::unordered_map<std::uint64_t, Done> in_flight;
    std::uint64_t last_sent = 0;  // request that has left through a connection
    bool asking = false;
    std::unique_ptr<transport::asio::steady_timer> last_words;  // while it is dying
    std::optional<Death> dying;
    std::optional<Failure> dead;
  };

  Peer& peer(const AddressPtr& to);
  void post(Peer& peer, std::uint64_t id, transport::Outgoing message);
  void connect(Peer& peer);
  void opened(ProcessId process, transport::ConnectionPtr connection);
  void lost(ProcessId process, const Death& death);
  void damaged(ProcessId process);
  void ask_fate(ProcessId process, const std::string& symptom);
  void receive(const transport::ConnectionPtr& connection, ProcessId process, wire::Message::Reader message);
  void answer(ProcessId process, std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time = {});
  void wait_for_last_words(ProcessId process, Peer& peer);
  Outcome read(wire::Outcome::Reader from);
  Outcome read(wire::RendezvousReply::Reader from);

  Ways ways_;
  Channels channels_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<ProcessId, Peer> peers_;
  std::vector<transport::ConnectionPtr> extra_;  // inbound, besides the one that this side sends through
};

}  // namespace troupe::process
