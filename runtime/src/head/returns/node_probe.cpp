#include "head/returns/node_probe.hpp"

#include <utility>

namespace troupe::head {

NodeProbe::NodeProbe(boost::asio::io_context& loop, transport::Endpoint node,
                     transport::ClientOptions client, Callbacks callbacks)
    : loop_(loop),
      node_(std::move(node)),
      client_(std::move(client)),
      callbacks_(std::move(callbacks)),
      pause_(loop) {}

NodeProbe::~NodeProbe() {
  if (held_) held_->close();
}

void NodeProbe::start() {
  transport::connect(
      loop_, node_, client_,
      [weak = weak_from_this()](transport::ConnectionPtr connection, const transport::Accepted&) {
        if (const auto self = weak.lock()) return self->hold(std::move(connection));
        connection->close();
      },
      [weak = weak_from_this()](const transport::Denied& denied) {
        if (const auto self = weak.lock()) self->on_denied(denied);
      });
}

void NodeProbe::on_denied(const transport::Denied& denied) {
  if (denied.nobody_listens) {
    if (const auto gone = std::exchange(callbacks_.gone, nullptr)) gone();
    return;
  }
  const bool unanswered =
      denied.unreachable || denied.may_be_busy || denied.refused || ++tries_ >= kShortTries;
  if (unanswered) say_that_it_lives();
  start_after(unanswered ? kPauseUnanswered : kPause);
}

void NodeProbe::hold(transport::ConnectionPtr connection) {
  say_that_it_lives();
  held_ = std::move(connection);
  held_->hand_over(
      {}, [](wire::Message::Reader) {},
      [weak = weak_from_this()](const std::string&) {
        const auto self = weak.lock();
        if (!self) return;
        self->held_.reset();
        self->start_after(kPause);
      });
}

void NodeProbe::start_after(std::chrono::milliseconds pause) {
  pause_.expires_after(pause);
  pause_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->start();
  });
}

void NodeProbe::say_that_it_lives() {
  if (const auto lives = std::exchange(callbacks_.lives, nullptr)) lives();
}

}  // namespace troupe::head
