#include "transfer/sending.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/sendfile.h>
#include <sys/socket.h>

#include "transfer/chunks.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::transfer {
namespace {

using boost::system::error_code;

/// Sent before other receivers of the loop get their turn.
constexpr std::size_t kSendTurnBytes = std::size_t{4} << 20;

std::vector<char> frame_of(transport::Outgoing message) {
  std::vector<char> bytes;
  message.append_to(bytes);
  return bytes;
}

}  // namespace

Sending::Sending(boost::asio::io_context& loop, os::UniqueFd socket, std::uint64_t from,
                 SendingOptions options, OnEnded on_ended)
    : loop_(loop),
      socket_(transport::adopt(loop, transport::OwnedFd(socket.release()), not_watched_)),
      options_(options),
      on_ended_(std::move(on_ended)),
      timer_(loop),
      silence_(loop.get_executor()),
      offset_(from) {}

void Sending::start() {
  if (ended_) return;
  if (not_watched_) return end(false);
  moved_ = Clock::now();
  wait_to_read();
  keep_alive();
  expect_to_be_taken();
}

void Sending::serve(Source source, std::uint64_t available) {
  source_ = std::move(source);
  available_ = available;
  turn();
}

void Sending::available(std::uint64_t bytes) {
  available_ = std::max(available_, bytes);
  turn();
}

void Sending::refuse(const store::Refusal& refusal) {
  if (ended_ || last_) return;
  if (chunk_left_ > 0) return end(false);  // what would follow is taken for bytes
  transport::Outgoing message;
  auto refused = message.root().initTransferRefused();
  refused.setKind(static_cast<std::uint16_t>(refusal.kind));
  refused.setMessage(refusal.message.substr(0, 2000));
  refused_ = true;
  refusal_ = frame_of(std::move(message));
  turn();
}

void Sending::stop() { end(false); }

void Sending::end(bool complete) {
  if (std::exchange(ended_, true)) return;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  silence_.cancel();
  source_.reset();
  const auto on_ended = std::exchange(on_ended_, nullptr);
  on_ended(complete);
}

// ---- writing ------------------------------------------------------------------------------------

/// False where there is nothing to be sent now.
bool Sending::prepare_next() {
  if (last_) return false;
  if (refused_) {
    head_ = std::move(refusal_);
    head_sent_ = 0;
    last_ = true;
    return true;
  }
  if (!source_) return false;
  const bool is_empty = source_->bytes == offset_ && !any_chunk_;
  if (offset_ >= available_ && !is_empty) return false;
  const auto chunk =
      source_->whole().subspan(offset_, std::min<std::uint64_t>(kChunkBytes, available_ - offset_));
  const auto header = chunk_header(offset_, chunk);
  head_.assign(header.begin(), header.end());
  head_sent_ = 0;
  chunk_at_ = offset_;
  chunk_left_ = static_cast<std::uint32_t>(chunk.size());
  any_chunk_ = true;
  offset_ += chunk.size();
  last_ = offset_ == source_->bytes;
  return true;
}

/// False where the socket takes no more now, or never.
bool Sending::write_some(std::size_t& turn) {
  ssize_t sent = 0;
  if (head_sent_ < head_.size()) {
    const int more = chunk_left_ > 0 ? MSG_MORE : 0;
    sent = ::send(socket_.native_handle(), head_.data() + head_sent_, head_.size() - head_sent_,
                  MSG_DONTWAIT | MSG_NOSIGNAL | more);
    if (sent > 0) head_sent_ += static_cast<std::size_t>(sent);
  } else {
    auto at = static_cast<off_t>(source_->offset + chunk_at_);
    sent = ::sendfile(socket_.native_handle(), source_->arena->fd(), &at, chunk_left_);
    if (sent > 0) {
      chunk_at_ += static_cast<std::uint64_t>(sent);
      chunk_left_ -= static_cast<std::uint32_t>(sent);
    }
  }
  if (sent > 0) {
    moved_ = Clock::now();
    turn += static_cast<std::size_t>(sent);
    return true;
  }
  if (sent < 0 && errno == EINTR) return true;
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    wait_to_write();
  } else {
    end(false);
  }
  return false;
}

void Sending::turn() {
  if (ended_ || waits_to_write_ || hung_up_) return;
  expect_to_be_taken();
  for (std::size_t turn = 0; !is_sent() || prepare_next();) {
    if (turn >= kSendTurnBytes) return wait_to_write();
    if (!write_some(turn)) return;
  }
  if (!last_) return;
  hung_up_ = true;
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

void Sending::wait_to_write() {
  waits_to_write_ = true;
  socket_.async_wait(transport::Socket::wait_write, [self = shared_from_this()](error_code error) {
    self->waits_to_write_ = false;
    if (error != boost::asio::error::operation_aborted) self->turn();
  });
}

// ---- the receiver -------------------------------------------------------------------------------

/// It has nothing to say: what comes is its end.
void Sending::wait_to_read() {
  socket_.async_wait(transport::Socket::wait_read, [self = shared_from_this()](error_code error) {
    if (error != boost::asio::error::operation_aborted)
      self->end(self->hung_up_ && !self->refused_);
  });
}

/// By the clock: the receiver counts its own time.
void Sending::keep_alive() {
  timer_.expires_after(options_.keep_alive);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->ended_) return;
    if (self->waits() && Clock::now() - self->moved_ >= self->options_.keep_alive) {
      transport::Outgoing message;
      message.root().setTransferWait();
      self->head_ = frame_of(std::move(message));
      self->head_sent_ = 0;
      self->turn();
    }
    if (!self->ended_) self->keep_alive();
  });
}

/// From now on.
void Sending::expect_to_be_taken() {
  silence_.start(options_.silence, [self = shared_from_this()] {
    if (!self->waits()) return self->end(false);
    self->expect_to_be_taken();
  });
}

}  // namespace troupe::transfer
