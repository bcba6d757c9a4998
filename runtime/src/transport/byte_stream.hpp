#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/uio.h>
#include <boost/asio/generic/stream_protocol.hpp>

#include "os/unique_fd.hpp"
#include "transport/liveness.hpp"

namespace troupe::transport {

namespace asio = boost::asio;
using Socket = asio::generic::stream_protocol::socket;

/// Bytes in order, both ways, between this process and one other, over TCP or a unix socket; what
/// a Connection cuts its frames from. Nothing here blocks, and no buffer is lent to a pending
/// operation: the loop says only when to try again, so a stream may go away at any time. Encryption
/// has its place here: everything above sees bytes and Results only. Belongs to one io_context:
/// every call on that loop's thread.
///
///     [open] --close()--> [closed]        nothing moves any more, and waits end without a call
///        `---- release() --> [closed]     the same, but the descriptor lives on, elsewhere
class ByteStream {
 public:
  /// What became of an attempt to read or write.
  enum class Outcome {
    Moved,       ///< `bytes` of them
    WouldBlock,  ///< nothing now: wait_readable() or wait_writable() says when
    Ended,       ///< of a read: the peer writes no more
    Broken,      ///< nothing ever again; `error` is the errno
  };
  struct Result {
    Outcome outcome = Outcome::Moved;
    std::size_t bytes = 0;
    int error = 0;

    /// "Broken pipe", for messages.
    std::string error_text() const;
    /// The peer has closed its end; whatever it sent before can still be read.
    bool closed_by_peer() const;
  };

  /// `unreachable` is called once, from the loop, where what was written stays unacknowledged for so
  /// long that the peer's host or the network in between must be gone (Liveness); not after close().
  ByteStream(Socket socket, std::function<void()> unreachable);

  /// Up to into.size() bytes. Descriptors that came along are appended (see descriptors.hpp).
  Result read(std::span<char> into, std::vector<os::UniqueFd>& descriptors);
  /// The pieces, one after the other, as far as they are taken; the descriptors, which stay the
  /// caller's, go with the first byte.
  Result write(std::span<iovec> pieces, std::span<const int> descriptors);
  /// Calls `ready` from the loop when a read may bring something, or an end. One wait for each
  /// direction at a time: another call while one is pending does nothing.
  template <class Ready>
  void wait_readable(Ready ready) {
    wait(Socket::wait_read, &Waits::to_read, std::move(ready));
  }
  template <class Ready>
  void wait_writable(Ready ready) {
    wait(Socket::wait_write, &Waits::to_write, std::move(ready));
  }
  bool waits_to_write() const { return waits_->to_write; }

  /// The peer sees the end of what it reads; reading here goes on.
  void shut_down_writing();
  void close();
  /// The descriptor, which this stream closes no more; none where the kernel refuses.
  os::UniqueFd release();

  /// The process at the other end of a unix socket; 0: not known here.
  int peer_pid() const;
  const std::string& peer() const { return peer_; }  ///< peer_name() of socket/socket.hpp
  /// The address of this end; empty for unix.
  const std::string& local_host() const { return local_host_; }
  Socket::executor_type executor() { return socket_.get_executor(); }
  int descriptor() { return socket_.native_handle(); }  ///< which stays the stream's

 private:
  /// Shared with the pending operations, which may outlive the stream.
  struct Waits {
    bool to_read = false;
    bool to_write = false;
  };

  template <class Ready>
  void wait(Socket::wait_type direction, bool Waits::*pending, Ready ready) {
    if (std::exchange((*waits_).*pending, true)) return;
    socket_.async_wait(direction, [waits = waits_, pending, ready = std::move(ready)](
                                      const boost::system::error_code& error) mutable {
      (*waits).*pending = false;
      if (error != asio::error::operation_aborted) ready();
    });
  }

  Socket socket_;
  UnansweredWatch unanswered_;
  std::string peer_;
  std::string local_host_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace troupe::transport
