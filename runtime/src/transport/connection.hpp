#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <capnp/message.h>
#include <boost/asio/io_context.hpp>

#include "os/unique_fd.hpp"
#include "transport/byte_stream.hpp"
#include "transport/socket/descriptors.hpp"
#include "wire/message.capnp.h"

namespace troupe::transport {

/// Bounds on what a peer can make this process hold. Checked before anything is allocated.
struct Limits {
  std::size_t frame_bytes = std::size_t{256} << 20;  ///< of one message, header excluded
  /// Queued and not sent yet; above it the connection is closed.
  std::size_t outbox_bytes = std::size_t{1} << 30;
  int nesting = 64;
};
/// Until a peer has proven itself.
inline constexpr Limits kBeforeHandshake{
    .frame_bytes = 4096, .outbox_bytes = 1 << 16, .nesting = 8};

/// A message that is being built. `root()` is a wire::Message to be filled in.
class Outgoing {
 public:
  /// `bytes`: about how large it will be. A large value is then written into its frame, instead of
  /// copied once more.
  explicit Outgoing(std::size_t bytes = 0);
  wire::Message::Builder root() { return root_; }
  /// The one segment that goes onto the wire. Call it when everything is filled in.
  std::span<const char> body();
  /// Appends header and body to `out`.
  void append_to(std::vector<char>& out);

 private:
  std::unique_ptr<capnp::MallocMessageBuilder> message_;
  wire::Message::Builder root_;
};

/// A stream of messages over a stream of bytes. A frame is "TRP1", the body's length in bytes (u32, little
/// endian, a multiple of 8), then one Cap'n Proto segment. Lives in and belongs to one io_context:
/// every call on that loop's thread. A handler that throws kj::Exception, which is how Cap'n Proto
/// reports bytes that are no message, closes it too.
///
///     [made] --start()--> [open] --peer closed / bad frame / limit--> [closed]   on_closed is called once, with why
///                           |---- close(), last reference dropped ---->^         on_closed is not called
///                           `---- finish() ---> [finishing] ---------->^         on_closed is not called
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // The reader is valid only during the call.
  using OnMessage = std::function<void(wire::Message::Reader)>;
  using OnClosed = std::function<void(const std::string& why)>;

  static std::shared_ptr<Connection> make(Socket socket, Limits limits = {});
  ~Connection();

  /// Starts to read. Handlers run on the loop; they may call any method, and drop the connection.
  /// Messages that arrived before are delivered first.
  void start(OnMessage on_message, OnClosed on_closed);
  /// Replaces the handlers and the limits of a started connection (a handshake hands over to its
  /// user). With no handlers it stays open, and reads and reports nothing until it is handed over
  /// again.
  void hand_over(Limits limits, OnMessage on_message, OnClosed on_closed);
  /// Queues the message; many go out in one write. Ignored once closed. One that is given away is
  /// not copied where it is large. One above the limits closes the connection, and on_closed is
  /// called later, from the loop.
  void send(Outgoing& message);
  void send(Outgoing&& message);
  /// As send(), of a message that its sender keeps as well. It is not written to any more.
  void send(std::shared_ptr<Outgoing> message);
  /// As send(), of a message with its header, as append_to() has written it.
  void send_frame(std::span<const char> frame);
  /// Likewise, with descriptors that arrive with it (take_descriptors). Unix sockets only;
  /// kMostDescriptors at most, of one message and of what waits to be taken.
  void send_with_descriptors(Outgoing&& message, std::vector<os::UniqueFd> descriptors);
  /// Writes what is queued now, as far as the socket takes it: what is sent elsewhere after this
  /// comes after it.
  void flush();
  /// Calls `written` once, later from the loop, when all that was sent up to now is written.
  /// Replaces what was given before. Not called where the connection breaks before.
  void when_written(std::function<void()> written);
  std::uint64_t written_bytes() const;  ///< to the socket, since the connection was made
  bool is_unix() const;                 ///< what is written stays readable after this process's end
  /// Delivers now all that has arrived: of a peer that has ended, its last words.
  void drain();
  /// For the handler of a message: the descriptors that have arrived up to now and that nobody has
  /// taken, in order.
  std::vector<os::UniqueFd> take_descriptors();
  /// For the handler of a message: the bytes that it has on the wire, header excluded.
  std::size_t message_bytes() const;
  /// The process at the other end of a unix socket; 0: not known here.
  int peer_pid() const;
  /// Sends what is queued and gives the socket away, for bytes that are no messages; closed here
  /// then, and on_closed is not called. None where not all can be sent at once, or more has come
  /// than the messages that were delivered.
  os::UniqueFd detach();
  /// Sends what is queued, then closes; on_closed is not called. It needs no owner for that: it
  /// gives up on a peer that takes nothing for five seconds.
  void finish();
  /// Closes now; on_closed is not called.
  void close();
  bool is_open() const;
  bool is_over() const;  ///< closed: also what finish() had to send is out, or given up
  std::size_t queued_bytes() const;
  Socket::executor_type executor() const;  ///< of its loop
  int descriptor() const;                  ///< of its socket, which stays the connection's
  /// peer_name() of socket/socket.hpp: "127.0.0.1:4711", "[fe80::1%eth0]:4711", "unix".
  const std::string& peer() const;
  /// The address of this end: where the peer can reach this machine; empty for unix.
  std::string local_host() const;

 private:
  class Impl;
  explicit Connection(Socket socket, Limits limits);
  std::shared_ptr<Impl> impl_;
};
using ConnectionPtr = std::shared_ptr<Connection>;

}  // namespace troupe::transport
