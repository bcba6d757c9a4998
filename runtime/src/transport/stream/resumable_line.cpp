#include "transport/stream/resumable_line.hpp"

#include <cassert>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

namespace troupe::transport {
namespace {

bool is_counted(wire::Message::Which which) {
  return which != wire::Message::HEARTBEAT && which != wire::Message::STREAM_ACK;
}

}  // namespace

ResumableLine::ResumableLine(ConnectionPtr connection)
    : loop_(connection->executor()), connection_(std::move(connection)) {}
ResumableLine::~ResumableLine() { close(); }

std::shared_ptr<ResumableLine> ResumableLine::make(ConnectionPtr connection) {
  return std::shared_ptr<ResumableLine>(new ResumableLine(std::move(connection)));
}

void ResumableLine::start(OnMessage on_message, OnBroken on_broken) {
  handlers_ = std::make_shared<Handlers>(Handlers{std::move(on_message), std::move(on_broken)});
  listen();
}

void ResumableLine::keep() {
  keeps_ = true;
  receiver_.start(connection_.get(), {.number = ++connections_, .from = 1});
  sender_.start();
}

void ResumableLine::listen() {
  connection_->hand_over(
      {},
      [weak = weak_from_this(), from = connection_.get()](wire::Message::Reader message) {
        if (const auto self = weak.lock()) self->hear(from, message);
      },
      [weak = weak_from_this(), which = connection_.get()](const std::string& why) {
        if (const auto self = weak.lock()) self->ended(which, why);
      });
}

// ---- sending ------------------------------------------------------------------------------------

void ResumableLine::send(Outgoing& message) {
  if (over_) return;
  if (!is_counted(message.root().which())) {
    if (!connection_) return;
    connection_->send(message);
    if (receiver_.owes()) acknowledge();
    return;
  }
  if (!keeps_) {
    if (connection_) connection_->send(message);
    return;
  }
  const auto bytes = message.body().size();
  if (bytes > Limits{}.frame_bytes) {
    return fail_later(fmt::format("a message of {} bytes was to be sent, the limit is {}", bytes,
                                  Limits{}.frame_bytes));
  }
  if (sender_.kept_bytes() + bytes > kMostKeptBytes) {
    return fail_later(
        fmt::format("the peer does not keep up: {} bytes wait to be acknowledged, and {} more were "
                    "to be sent; the limit is {}",
                    sender_.kept_bytes(), bytes, kMostKeptBytes));
  }
  sender_.push(KeptMessage(std::move(message), 0));
  transmit();
}

void ResumableLine::transmit() {
  if (!connection_) return;
  while (const auto* next = sender_.next()) next->send_through(*connection_);
}

void ResumableLine::acknowledge() {
  Outgoing message;
  message.root().setStreamAck(receiver_.acknowledge());
  connection_->send(message);
}

std::size_t ResumableLine::queued_bytes() const {
  if (keeps_) return sender_.kept_bytes();
  return connection_ ? connection_->queued_bytes() : 0;
}

// ---- receiving ----------------------------------------------------------------------------------

/// A message counts before its handler sees it: one that the handler cannot read is not sent again.
void ResumableLine::hear(const Connection* from, wire::Message::Reader message) {
  if (connection_.get() != from) return;
  if (message.isStreamAck()) {
    if (keeps_ && sender_.acknowledged(message.getStreamAck())) transmit();
    return;
  }
  const bool counts = keeps_ && is_counted(message.which());
  if (counts && !receiver_.receive(from, connection_->message_bytes())) return;
  if (const auto handlers = handlers_) handlers->on_message(message);
  if (connection_.get() == from && receiver_.ack_is_due()) acknowledge();
}

// ---- connections --------------------------------------------------------------------------------

void ResumableLine::ended(const Connection* which, const std::string& why) {
  if (connection_.get() != which) return;
  receiver_.closed(which);
  connection_.reset();
  if (const auto handlers = handlers_) handlers->on_broken(why);
}

void ResumableLine::leave_connection() {
  if (const auto connection = std::exchange(connection_, nullptr)) {
    receiver_.closed(connection.get());
    connection->close();
  }
}

void ResumableLine::resume(ConnectionPtr connection, std::uint64_t arrived) {
  assert(is_resumable_from(arrived));
  leave_connection();
  connection_ = std::move(connection);
  receiver_.start(connection_.get(), {.number = ++connections_, .from = receiver_.received() + 1});
  sender_.acknowledged(arrived);
  sender_.start();
  listen();
  transmit();
}

/// Of send(), whose caller is in the middle of something and does not expect to be called.
void ResumableLine::fail_later(std::string why) {
  auto handlers = handlers_;
  close();
  boost::asio::post(
      loop_, [weak = weak_from_this(), handlers = std::move(handlers), why = std::move(why)] {
        if (!weak.expired() && handlers) handlers->on_broken(why);
      });
}

void ResumableLine::finish() {
  if (connection_) connection_->finish();
  connection_.reset();
  close();
}

void ResumableLine::close() {
  over_ = true;
  // May hold what owns this line: goes last.
  const auto handlers = std::exchange(handlers_, nullptr);
  leave_connection();
  sender_ = {};
}

}  // namespace troupe::transport
