#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "os/unique_fd.hpp"
#include "transport/connection.hpp"

namespace troupe::transport {

/// Bytes that wait to be sent, in order. Small messages are gathered, so that one write takes many;
/// a large one that was given away keeps its own memory, so that it is not copied.
class Outbox {
 public:
  void push(Outgoing& message);
  void push(Outgoing&& message);
  void push(std::shared_ptr<Outgoing> message);
  /// A message with its header.
  void push(std::span<const char> frame);
  /// The descriptors arrive with the first byte of the message.
  void push(Outgoing&& message, std::vector<os::UniqueFd> descriptors);
  /// The next bytes to be sent, as many pieces as fit; how many were filled in.
  std::size_t gather(std::span<iovec> pieces) const;
  /// What goes with the first of these bytes; closed once it has been sent.
  std::span<const os::UniqueFd> descriptors() const;
  /// So many of them were sent.
  void drop(std::size_t bytes);
  void clear();

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

 private:
  struct Piece {
    std::vector<char> batch;
    std::shared_ptr<Outgoing> large;  // instead of a batch
    std::vector<os::UniqueFd> descriptors;
    std::span<const char> bytes() const {
      return large ? large->body() : std::span<const char>(batch);
    }
  };

  std::vector<char>& batch();

  std::deque<Piece> pieces_;
  std::size_t sent_ = 0;  // of the first piece
  std::size_t bytes_ = 0;
  std::vector<char> spare_;  // memory of a batch that was sent
};

}  // namespace troupe::transport
