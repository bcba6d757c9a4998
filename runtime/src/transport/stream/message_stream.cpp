#include "transport/stream/message_stream.hpp"

#include <algorithm>
#include <utility>

#include "transport/frame.hpp"

namespace troupe::transport {

KeptMessage::KeptMessage(Outgoing&& message, std::uint64_t request, std::uint64_t reply)
    : request_(request), reply_(reply) {
  if (const auto bytes = message.body().size(); bytes <= kLargeBytes) {
    frame_.reserve(kHeaderBytes + bytes);
    message.append_to(frame_);
  } else {
    large_ = std::make_shared<Outgoing>(std::move(message));
  }
}

std::span<const char> KeptMessage::body() const {
  return large_ ? large_->body() : std::span(frame_).subspan(kHeaderBytes);
}

std::size_t KeptMessage::bytes() const {
  return large_ ? large_->body().size() + kHeaderBytes : frame_.size();
}

void KeptMessage::send_through(Connection& connection) const {
  if (large_) return connection.send(large_);
  connection.send_frame(frame_);
}

// ---- sender -------------------------------------------------------------------------------------

void StreamSender::push(KeptMessage message) {
  kept_bytes_ += message.bytes();
  kept_.push_back(std::move(message));
}

StreamStart StreamSender::start() {
  handed_ = handed_bytes_ = 0;
  return {.number = ++connections_, .from = acknowledged_ + 1};
}

const KeptMessage* StreamSender::next() {
  if (handed_ == kept_.size()) return nullptr;
  const auto& message = kept_[handed_];
  if (handed_ != 0 && handed_bytes_ + message.bytes() > kWindowBytes) return nullptr;
  ++handed_;
  handed_bytes_ += message.bytes();
  ever_handed_ = std::max(ever_handed_, acknowledged_ + handed_);
  last_request_handed_ = std::max(last_request_handed_, message.request());
  return &message;
}

bool StreamSender::acknowledged(std::uint64_t received) {
  if (received <= acknowledged_ || received > ever_handed_) return false;
  while (acknowledged_ < received) {
    const auto bytes = kept_.front().bytes();
    kept_bytes_ -= bytes;
    last_reply_arrived_ = std::max(last_reply_arrived_, kept_.front().reply());
    if (handed_ != 0) {
      --handed_;
      handed_bytes_ -= bytes;
    }
    kept_.pop_front();
    ++acknowledged_;
  }
  return true;
}

void StreamSender::replace(KeptMessage& kept, KeptMessage with) {
  const auto before = kept.bytes();
  const bool handed = std::size_t(&kept - &kept_.front()) < handed_;
  kept_bytes_ += with.bytes() - before;
  if (handed) handed_bytes_ += with.bytes() - before;
  kept = std::move(with);
}

// ---- receiver -----------------------------------------------------------------------------------

bool StreamReceiver::start(Carrier connection, const StreamStart& begin) {
  if (begin.from == 0 || begin.from > received_ + 1) return false;
  if (begin.number <= number_) return true;  // of a connection that its sender has left already
  number_ = begin.number;
  heard_ = connection;
  next_ = begin.from;
  if (begin.from <= received_) ++owed_messages_;  // the sender does not know what has arrived
  return true;
}

bool StreamReceiver::receive(Carrier connection, std::size_t bytes) {
  if (connection != heard_) return false;
  ++owed_messages_;
  owed_bytes_ += bytes;
  const auto place = next_++;
  if (place <= received_) return false;
  received_ = place;
  return true;
}

void StreamReceiver::closed(Carrier connection) {
  if (heard_ == connection) heard_ = nullptr;
}

std::uint64_t StreamReceiver::acknowledge() {
  owed_messages_ = owed_bytes_ = 0;
  return received_;
}

}  // namespace troupe::transport
