#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "transport/connection.hpp"
#include "transport/stream/message_stream.hpp"

namespace troupe::transport {

/// What two processes say to each other, both ways, over one connection at a time: a line outlives
/// its connection where its owner makes another one. Both ends count the messages that they have
/// been delivered, without a number on the wire, as the stream management of XMPP does (XEP-0198).
/// A new connection begins with these two counts, which the owners exchange in messages of their
/// own (nodeResume, nodeResumed); each end then sends again what the other has not had. Heartbeats
/// and acknowledgements are not counted: they belong to their connection.
///
///   [carried] --its connection ends--> [broken], and on_broken is called
///   [broken]  --resume()--> [carried]
///   [carried] --leave_connection()--> [broken]
///   [carried] --resume(): the connection before is half-open, and is closed--> [carried]
///   [carried], [broken] --close(), finish(), or more is kept than may be--> [over]
///
/// A line that keeps nothing, as each does until keep() is called, is its connection and no more:
/// it cannot be resumed. What holds between the two ends of a line that keeps:
///
///   1. Each end delivers the messages of the other end in the order in which they were sent, each
///      once, and none before all that were sent before it, whatever the connections lose.
///   2. Once a connection lives long enough, all that was sent is delivered.
///   3. A connection that has been replaced is not heard any more, neither its messages nor its end.
///   4. A message is kept until the other end has acknowledged it, and counts in queued_bytes()
///      until then: who sends less while much waits is held up by a broken line too.
///   5. No more than kMostKeptBytes are kept: the line is over then, and on_broken says so. How
///      long a broken line is kept is its owner's matter: a node's lease, a head's patience.
///
/// Lives in one process at each end and belongs to the loop of its connections. Handlers may call
/// any method, and drop the line.
class ResumableLine : public std::enable_shared_from_this<ResumableLine> {
 public:
  using OnMessage = Connection::OnMessage;
  /// is_resumable() says whether another connection can be given to it.
  using OnBroken = Connection::OnClosed;

  static constexpr std::size_t kMostKeptBytes = Limits{}.outbox_bytes;

  /// Of a connection that reads nothing yet, or is read by a handler of the caller.
  static std::shared_ptr<ResumableLine> make(ConnectionPtr connection);
  ~ResumableLine();

  void start(OnMessage on_message, OnBroken on_broken);
  /// From now on messages are counted and kept. Before anything that counts has been sent at either
  /// end, and at both ends behind the same message.
  void keep();
  /// The message is given away. A message that counts and is above the limits ends the line.
  void send(Outgoing& message);

  /// The connection leads nowhere any more: it is closed, and on_broken is not called.
  void leave_connection();
  /// Messages that this end has been delivered: for the other end's resume(), once this end hears
  /// no connection any more.
  std::uint64_t received() const { return receiver_.received(); }
  bool is_resumable() const { return keeps_ && !over_; }
  /// The other end may have had so many: it has lost none that it acknowledged, and no others were
  /// sent.
  bool is_resumable_from(std::uint64_t arrived) const {
    return is_resumable() && sender_.may_have_arrived(arrived);
  }
  /// The line goes on through this connection, from the message behind the `arrived` ones that the
  /// other end has had, from which it is resumable.
  void resume(ConnectionPtr connection, std::uint64_t arrived);

  /// Ends the line in order: its connection still sends what it was handed, as long as the other
  /// end takes it (Connection::finish). Messages that wait for another connection, or for room in
  /// this one, are lost. on_broken is not called.
  void finish();
  /// Ends the line now. Messages that the other end has not had may be lost. on_broken is not
  /// called.
  void close();

  /// That the other end is not known to have had.
  std::size_t queued_bytes() const;
  /// nullptr: it is broken or over.
  const ConnectionPtr& connection() const { return connection_; }

 private:
  struct Handlers {
    OnMessage on_message;
    OnBroken on_broken;
  };

  explicit ResumableLine(ConnectionPtr connection);
  void listen();
  void hear(const Connection* from, wire::Message::Reader message);
  void ended(const Connection* which, const std::string& why);
  void transmit();
  void acknowledge();
  void fail_later(std::string why);

  const boost::asio::any_io_executor loop_;
  ConnectionPtr connection_;
  // Shared with the call that runs: a handler may drop the line.
  std::shared_ptr<Handlers> handlers_;
  StreamSender sender_;
  StreamReceiver receiver_;
  std::uint64_t connections_ = 0;  // that have carried it since it keeps
  bool keeps_ = false;
  bool over_ = false;
};
using LinePtr = std::shared_ptr<ResumableLine>;

}  // namespace troupe::transport
