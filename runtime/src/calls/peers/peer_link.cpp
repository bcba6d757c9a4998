#include "calls/peers/peer_link.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "calls/given_up.hpp"

namespace troupe::runtime {

PeerLink::PeerLink(ProcessId process, const Callbacks& callbacks)
    : process_(process),
      callbacks_(callbacks),
      broken_(callbacks.loop.get_executor()),
      retry_(callbacks.loop),
      writing_(callbacks.loop.get_executor()) {}

// ---- connections --------------------------------------------------------------------------------

void PeerLink::reach(const AddressPtr& address) {
  if (address_) return;
  address_ = address;
  if (!through_) dial();
}

void PeerLink::dial() {
  if (stopped_ || std::exchange(dialling_, true)) return;
  retry_.cancel();
  callbacks_.dial(
      address_,
      [weak = weak_from_this()](transport::ConnectionPtr connection) {
        const auto self = weak.lock();
        if (!self) return connection->close();
        self->dialling_ = false;
        self->adopt(connection);
      },
      [weak = weak_from_this()](const std::string& why) {
        const auto self = weak.lock();
        if (!self) return;
        self->dialling_ = false;
        if (!self->through_ && !self->stopped_) self->broke(why);
      });
}

void PeerLink::adopt(const transport::ConnectionPtr& connection) {
  connections_.push_back(connection);
  connection->hand_over(
      transport::Limits{},
      [link = weak_from_this(), from = std::weak_ptr(connection)](wire::Message::Reader message) {
        const auto self = link.lock();
        const auto open = from.lock();
        if (self && open) self->receive(open, message);
      },
      [link = weak_from_this(), from = std::weak_ptr(connection)](const std::string& why) {
        const auto self = link.lock();
        const auto open = from.lock();
        if (self && open) self->closed(open, why);
      });
  if (!through_ && !stopped_) use(connection);
  callbacks_.on_opened(process_, connection);
}

void PeerLink::use(transport::ConnectionPtr connection) {
  retry_.cancel();
  is_broken_ = false;
  broken_.cancel();
  told_.reset();
  through_ = std::move(connection);
  opened_at_ = Clock::now();
  progressed_ = false;
  stood_at_.reset();
  const auto begin = sender_.start();
  transport::Outgoing message;
  auto out = message.root().initStreamStart();
  out.setNumber(begin.number);
  out.setFrom(begin.from);
  out.setReceived(receiver_.acknowledge());
  through_->send(message);
  transmit();
}

void PeerLink::closed(const transport::ConnectionPtr& connection, const std::string& why) {
  const auto self = shared_from_this();
  std::erase(connections_, connection);
  receiver_.closed(connection.get());
  callbacks_.on_closed(process_, connection);
  const bool used = through_ == connection;
  if (used) {
    through_ = nullptr;
    release_writer();
  }
  if (stopped_) {
    if (connections_.empty()) callbacks_.on_broken(process_, why);
    return;
  }
  if (!used) return;
  if (Clock::now() - opened_at_ >= callbacks_.longest_pause) pause_ = kFirstPause;
  count_in_vain(why);
  const auto other =
      std::ranges::find_if(connections_, [](const auto& open) { return open->is_open(); });
  if (other != connections_.end()) return use(*other);
  broke(why);
}

void PeerLink::count_in_vain(const std::string& why) {
  if (sender_.empty() || progressed_) return;
  if (++in_vain_ < kMostInVain) return;
  in_vain_ = 0;
  callbacks_.on_stuck(process_, why);
}

void PeerLink::broke(const std::string& why) {
  why_ = why;
  if (!std::exchange(is_broken_, true)) {
    broken_.start(callbacks_.patience, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->tell_unreachable();
    });
  }
  pause();
  callbacks_.on_broken(process_, why);
}

void PeerLink::pause() {
  if (stopped_) return;
  retry_.expires_after(pause_);
  pause_ = std::min(2 * pause_, callbacks_.longest_pause);
  retry_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->try_again();
  });
}

void PeerLink::tell_unreachable() {
  told_ = Clock::now();
  callbacks_.on_unreachable(process_, why_);
}

void PeerLink::try_again() {
  if (through_ || stopped_) return;
  const auto self = shared_from_this();
  // Out of reach for long already: from then on by the clock, without a timer that runs.
  if (told_ && Clock::now() - *told_ >= callbacks_.patience) {
    tell_unreachable();
    if (stopped_) return;
  }
  if (address_) return dial();
  pause();
  callbacks_.on_broken(process_, why_);
}

void PeerLink::stop() {
  stopped_ = true;
  retry_.cancel();
  broken_.cancel();
  release_writer();
}

void PeerLink::close() {
  stop();
  through_ = nullptr;
  for (const auto& connection : std::exchange(connections_, {})) connection->close();
}

// ---- messages -----------------------------------------------------------------------------------

void PeerLink::send(transport::Outgoing&& message, std::uint64_t request, std::uint64_t reply) {
  sender_.push(KeptMessage(std::move(message), request, reply));
  transmit();
}

void PeerLink::flush() {
  if (through_) through_->flush();
}

void PeerLink::drain() {
  const auto self = shared_from_this();
  for (const auto& connection : std::vector(connections_)) connection->drain();
}

void PeerLink::transmit() {
  while (const auto* message = through_ ? sender_.next() : nullptr)
    message->send_through(*through_);
}

// ---- what is to be written ----------------------------------------------------------------------

void PeerLink::write_out(std::function<void()> done) {
  flush();
  if (!may_wait_for_reader()) return done();
  writer_ = std::move(done);
  through_->when_written([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->release_writer();
  });
  writing_.start(callbacks_.write_patience, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->give_up_writing();
  });
}

/// What the window holds back is far more than a process that stands still would be waited for.
bool PeerLink::may_wait_for_reader() {
  if (stopped_ || !through_ || !through_->is_unix() || through_->queued_bytes() == 0) return false;
  if (stood_at_ == through_->written_bytes()) return false;
  stood_at_.reset();
  return true;
}

void PeerLink::give_up_writing() {
  if (!writer_) return;
  stood_at_ = through_->written_bytes();
  release_writer();
}

void PeerLink::release_writer() {
  writing_.cancel();
  if (const auto done = std::exchange(writer_, nullptr)) done();
}

// ---- messages that have come --------------------------------------------------------------------

void PeerLink::receive(const transport::ConnectionPtr& connection, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::STREAM_START:
      return begin_stream(connection, message.getStreamStart());
    case wire::Message::STREAM_ACK:
      return acknowledged(message.getStreamAck());
    case wire::Message::CHANNEL_OFFER:
    case wire::Message::CHANNEL_READY:
      return callbacks_.on_opening(process_, connection, message);
    default:
      return receive_counted(connection, message);
  }
}

void PeerLink::acknowledged(std::uint64_t received) {
  const auto replies_before = sender_.last_reply_arrived();
  if (!sender_.acknowledged(received)) return;
  if (sender_.last_reply_arrived() != replies_before)
    callbacks_.on_replies_arrived(process_, sender_.last_reply_arrived());
  progressed_ = true;
  in_vain_ = 0;
  pause_ = kFirstPause;
  transmit();
}

/// What had arrived before is said at once, so that it counts even where this connection breaks
/// soon.
void PeerLink::begin_stream(const transport::ConnectionPtr& connection,
                            wire::StreamStart::Reader start) {
  if (!receiver_.start(connection.get(), {.number = start.getNumber(), .from = start.getFrom()})) {
    connection->close();
    return closed(connection,
                  "the other process went on with its messages behind some that have not arrived");
  }
  acknowledged(start.getReceived());
  if (!receiver_.owes()) return;
  acknowledge();
  flush();
}

void PeerLink::receive_counted(const transport::ConnectionPtr& connection,
                               wire::Message::Reader message) {
  const bool owed = receiver_.owes();
  const bool fresh = receiver_.receive(connection.get(), connection->message_bytes());
  if (receiver_.ack_is_due()) {
    acknowledge();
  } else if (!owed && receiver_.owes()) {
    callbacks_.on_owed();
  }
  if (fresh) callbacks_.deliver(process_, message);
}

void PeerLink::acknowledge() {
  if (!receiver_.owes() || connections_.empty()) return;
  const auto& through = through_ ? through_ : connections_.back();
  transport::Outgoing message;
  message.root().setStreamAck(receiver_.acknowledge());
  through->send(message);
}

// ---- giving up ----------------------------------------------------------------------------------

void PeerLink::give_up_requests(const Failure& why) {
  for (auto& kept : sender_.kept()) {
    if (kept.request() == 0) continue;
    if (auto instead = given_up(kept.body(), why))
      sender_.replace(kept, KeptMessage(std::move(*instead), 0));
  }
}

std::optional<PeerLink::GivenUp> PeerLink::give_up_first(const Failure& why) {
  for (auto& kept : sender_.kept()) {
    const GivenUp first{.request = kept.request(), .call = channel_call(kept.body())};
    auto instead = given_up(kept.body(), why);
    if (!instead) continue;
    sender_.replace(kept, KeptMessage(std::move(*instead), 0, kept.reply()));
    return first;
  }
  return std::nullopt;
}

}  // namespace troupe::runtime
