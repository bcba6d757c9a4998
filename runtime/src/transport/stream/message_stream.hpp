#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/connection.hpp"

namespace troupe::transport {

/// Messages from one process to another one, each delivered once and in order, whatever becomes of
/// the connections that carry them: the sender keeps what has not been acknowledged, and sends it
/// again through the next connection. Pure: no sockets, no clock. What holds of the two ends
/// together:
///
///   1. What is delivered is a prefix of what was pushed, in that order, and no message is delivered twice.
///   2. While connections are made anew and one lives long enough, everything that was pushed is delivered.
///   3. A message is kept until it is acknowledged, and no longer.
///
///   sender                                               receiver
///     on a connection: streamStart(number, from)   ──▶   a connection with a lower number is not heard any more
///     messages from, from + 1, ...                 ──▶   delivers those that it has not had
///     drops what has arrived                       ◀──   streamAck(received): now and then, on any connection
struct StreamStart {
  /// Of the connection, among those that the sender has used for this stream.
  std::uint64_t number = 0;
  std::uint64_t from = 0;  ///< the place of the first message that follows
};

/// One message of a stream, as it goes onto the wire. A large one is shared with the outbox of a
/// connection.
class KeptMessage {
 public:
  /// Messages up to this size are copied into memory of their own size.
  static constexpr std::size_t kLargeBytes = std::size_t{32} << 10;

  KeptMessage(Outgoing&& message, std::uint64_t request, std::uint64_t reply = 0);

  /// What its sender knows the message by; 0: nothing.
  std::uint64_t request() const { return request_; }
  /// Of a reply, where it stands in its process's ReplyLog; 0: nowhere.
  std::uint64_t reply() const { return reply_; }
  std::size_t bytes() const;
  std::span<const char> body() const;
  void send_through(Connection& connection) const;

 private:
  std::uint64_t request_;
  std::uint64_t reply_;
  std::vector<char> frame_;          // with its header
  std::shared_ptr<Outgoing> large_;  // instead of a frame
};

class StreamSender {
 public:
  /// What is handed to one connection without being acknowledged, but for one message: far below
  /// the limit of an outbox.
  static constexpr std::size_t kWindowBytes = std::size_t{512} << 20;

  void push(KeptMessage message);
  /// A connection is used from now on: what goes first. The messages that next() names follow.
  StreamStart start();
  /// The next message to be handed to the connection; nullptr: none for now.
  const KeptMessage* next();
  /// So many messages have arrived at the receiver. -> true: some of them were not known to have. A
  /// number that no receiver can have counted is ignored.
  bool acknowledged(std::uint64_t received);

  /// A receiver may say so: it has lost nothing that it acknowledged, and has had nothing that no
  /// connection was handed.
  bool may_have_arrived(std::uint64_t received) const {
    return received >= acknowledged_ && received <= ever_handed_;
  }

  /// The messages that are not acknowledged, in order.
  std::deque<KeptMessage>& kept() { return kept_; }
  bool empty() const { return kept_.empty(); }
  std::size_t kept_bytes() const { return kept_bytes_; }
  /// Puts another message into the place of one that is kept.
  void replace(KeptMessage& kept, KeptMessage with);
  /// The highest request of the messages that have been handed to a connection; 0: none.
  std::uint64_t last_request_handed() const { return last_request_handed_; }
  /// The highest reply() of the messages that have arrived; 0: none.
  std::uint64_t last_reply_arrived() const { return last_reply_arrived_; }

 private:
  std::deque<KeptMessage> kept_;
  std::uint64_t acknowledged_ = 0;  // messages before the first that is kept
  std::size_t handed_ = 0;          // of those kept: to the connection that is used
  std::uint64_t ever_handed_ = 0;   // place of the last message that any connection was handed
  std::size_t handed_bytes_ = 0;
  std::size_t kept_bytes_ = 0;
  std::uint64_t connections_ = 0;
  std::uint64_t last_request_handed_ = 0;
  std::uint64_t last_reply_arrived_ = 0;
};

class StreamReceiver {
 public:
  /// An acknowledgement is due after so many messages or bytes; before that it is owed, and given
  /// within a while.
  static constexpr std::uint64_t kAckMessages = 64;
  static constexpr std::size_t kAckBytes = std::size_t{256} << 10;

  /// What tells connections apart while they live.
  using Carrier = const void*;

  /// The stream goes on through this connection. False: no sender says that.
  bool start(Carrier connection, const StreamStart& begin);
  /// The next message of the stream has come through it. True: it is to be delivered.
  bool receive(Carrier connection, std::size_t bytes);
  /// Another connection may come to have the same address.
  void closed(Carrier connection);

  std::uint64_t received() const { return received_; }  ///< messages of the stream so far
  bool owes() const { return owed_messages_ != 0; }
  bool ack_is_due() const { return owed_messages_ >= kAckMessages || owed_bytes_ >= kAckBytes; }
  /// What to acknowledge; nothing is owed then.
  std::uint64_t acknowledge();

 private:
  Carrier heard_ = nullptr;
  std::uint64_t number_ = 0;
  // Place of the message that comes next through the connection that is heard.
  std::uint64_t next_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t owed_messages_ = 0;
  std::size_t owed_bytes_ = 0;
};

}  // namespace troupe::transport
