#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <troupe/errors.hpp>

#include "ids/address.hpp"
#include "transport/silence_timer.hpp"
#include "transport/stream/message_stream.hpp"

namespace troupe::runtime {

using transport::KeptMessage;
using transport::StreamReceiver;
using transport::StreamSender;
using transport::StreamStart;

/// The connections between this process and another one, and the streams that they carry in both
/// directions. Messages go through one connection, and come through the one that the other process
/// has chosen. Belongs to the loop.
///
///   [idle] --reach()--> [dialling] --opened--> [open] --closed, no other one is left--> [broken]
///              adopt() of a connection that the other process made: [any] --> [open]
///   [broken] --a pause, with an address--> [dialling];  without: the other process is waited for
///   [any] --stop()--> [stopped]: what has arrived is still read, and nothing is dialled any more
class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  /// Between a broken connection and the next attempt; doubles until something has arrived at the
  /// other process again.
  static constexpr std::chrono::milliseconds kFirstPause{50};
  static constexpr std::chrono::milliseconds kLongestPause{2000};
  /// How long calls wait for a process that lives and cannot be reached, in time that this one
  /// runs.
  static constexpr std::chrono::seconds kPatience{20};
  /// Connections in a row that broke before the first message had arrived, after which that message
  /// is given up.
  static constexpr int kMostInVain = 8;
  /// How long write_out() waits, in time that this process runs.
  static constexpr std::chrono::seconds kWritePatience{10};

  using Opened = std::function<void(transport::ConnectionPtr)>;
  using Denied = std::function<void(const std::string& why)>;
  /// What a link asks of its user; of all links of this process, and outlives them. Each may end
  /// the link.
  struct Callbacks {
    boost::asio::io_context& loop;
    std::function<void(const AddressPtr&, Opened, Denied)> dial;
    /// A message of the stream: called once for each, in order.
    std::function<void(ProcessId, wire::Message::Reader)> deliver;
    /// A message that belongs to its connection.
    std::function<void(ProcessId, const transport::ConnectionPtr&, wire::Message::Reader)>
        on_opening;
    std::function<void(ProcessId, const transport::ConnectionPtr&)> on_opened;
    std::function<void(ProcessId, const transport::ConnectionPtr&)> on_closed;
    /// No connection is left, or none could be made: has the process ended? Called again while that
    /// lasts.
    std::function<void(ProcessId, const std::string& why)> on_broken;
    /// That has lasted for kPatience. Called again after the same time.
    std::function<void(ProcessId, const std::string& why)> on_unreachable;
    /// kMostInVain connections broke with the same first message.
    std::function<void(ProcessId, const std::string& why)> on_stuck;
    /// What was sent with this number for a reply, and with lower ones, has arrived; called again for
    /// higher ones.
    std::function<void(ProcessId, std::uint64_t reply)> on_replies_arrived;
    /// An acknowledgement is owed: acknowledge() is to be called within a short while.
    std::function<void()> on_owed;
    std::chrono::milliseconds longest_pause = kLongestPause;
    std::chrono::milliseconds patience = kPatience;
    std::chrono::milliseconds write_patience = kWritePatience;
  };

  PeerLink(ProcessId process, const Callbacks& callbacks);

  /// Where the process listens. Dials where there is no connection.
  void reach(const AddressPtr& address);
  /// A connection that either of the two has made.
  void adopt(const transport::ConnectionPtr& connection);
  /// The next message of the stream. `request`: what the message asks for, 0: it has no answer.
  /// `reply`: for on_replies_arrived, ascending; 0: nobody wants to know.
  void send(transport::Outgoing&& message, std::uint64_t request, std::uint64_t reply = 0);
  /// Calls `done` once what was sent up to now is written to the unix socket, where the process finds
  /// it also after this one has ended: at once, or later from the loop. Through TCP, which may lose
  /// that, at once; also when the link is stopped or the connection breaks, and after kWritePatience,
  /// from which on nothing is waited for until the process has taken something. One at a time.
  void write_out(std::function<void()> done);
  /// Delivers now all that has arrived. May end the link.
  void drain();
  /// Acknowledges what has arrived, if that is owed.
  void acknowledge();
  void stop();
  /// stop(), and closes the connections.
  void close();

  bool is_open() const { return through_ != nullptr; }
  std::size_t kept_bytes() const { return sender_.kept_bytes(); }
  std::uint64_t last_request_handed() const { return sender_.last_request_handed(); }
  /// The requests that have not arrived, as far as is known here, are not to be performed any more.
  void give_up_requests(const Failure& why);
  struct GivenUp {
    std::uint64_t request = 0;
    std::uint64_t call = 0;  // of a call whose place stands in a channel; 0: it is none
  };
  /// The first message that has not arrived and need not. nullopt: there is none.
  std::optional<GivenUp> give_up_first(const Failure& why);

 private:
  using Clock = std::chrono::steady_clock;

  void dial();
  void use(transport::ConnectionPtr connection);
  void transmit();
  void flush();
  bool may_wait_for_reader();
  void give_up_writing();
  void release_writer();
  void receive(const transport::ConnectionPtr& connection, wire::Message::Reader message);
  void receive_counted(const transport::ConnectionPtr& connection, wire::Message::Reader message);
  void acknowledged(std::uint64_t received);
  void begin_stream(const transport::ConnectionPtr& connection, wire::StreamStart::Reader start);
  void closed(const transport::ConnectionPtr& connection, const std::string& why);
  void count_in_vain(const std::string& why);
  void broke(const std::string& why);
  void pause();
  void try_again();
  void tell_unreachable();

  const ProcessId process_;
  const Callbacks& callbacks_;
  AddressPtr address_;
  std::vector<transport::ConnectionPtr> connections_;
  transport::ConnectionPtr through_;  // one of them: this side sends through it
  StreamSender sender_;
  StreamReceiver receiver_;
  bool dialling_ = false;
  bool stopped_ = false;
  bool progressed_ = false;  // something has arrived through the connection that is used
  int in_vain_ = 0;
  Clock::time_point opened_at_;
  bool is_broken_ = false;
  transport::SilenceTimer broken_;         // runs then, until told_ is set
  std::optional<Clock::time_point> told_;  // when on_unreachable was called last
  std::string why_;
  std::chrono::milliseconds pause_ = kFirstPause;
  boost::asio::steady_timer retry_;
  std::function<void()> writer_;  // what write_out() was given and has not called
  transport::SilenceTimer writing_;
  std::optional<std::uint64_t> stood_at_;  // written_bytes() when a writer was let go unwritten
};

}  // namespace troupe::runtime
