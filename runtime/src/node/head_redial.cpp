#include "node/head_redial.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::node {

HeadRedial::HeadRedial(boost::asio::io_context& loop, transport::Endpoint head,
                       transport::ClientOptions client, Self self, Callbacks callbacks)
    : loop_(loop),
      head_(std::move(head)),
      client_(std::move(client)),
      self_(self),
      callbacks_(std::move(callbacks)),
      answer_limit_(loop.get_executor()),
      pause_(loop) {}

HeadRedial::~HeadRedial() { drop(); }

void HeadRedial::start(std::chrono::milliseconds pause) {
  if (pause.count() == 0) return dial();
  dial_after(pause);
}

void HeadRedial::dial_after(std::chrono::milliseconds pause) {
  pause_.expires_after(pause);
  pause_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->dial();
  });
}

void HeadRedial::dial() {
  transport::connect(
      loop_, head_, client_,
      [weak = weak_from_this()](transport::ConnectionPtr connection, const transport::Accepted&) {
        if (const auto self = weak.lock()) return self->ask(std::move(connection));
        connection->close();
      },
      [weak = weak_from_this()](const transport::Denied& denied) {
        if (const auto self = weak.lock()) self->on_denied(denied);
      });
}

void HeadRedial::on_denied(const transport::Denied& denied) {
  const bool is_final = (denied.nobody_listens || denied.refused) && !callbacks_.has_other_way();
  if (is_final)
    return callbacks_.ended(denied.nobody_listens ? End::HeadGone : End::Refused, denied.why);
  if (denied.may_be_busy) client_.timeout = std::min(2 * client_.timeout, kLongestAttempt);
  try_again(denied.why);
}

void HeadRedial::ask(transport::ConnectionPtr connection) {
  connection_ = std::move(connection);
  connection_->hand_over(
      {},
      [weak = weak_from_this()](wire::Message::Reader message) {
        if (const auto self = weak.lock()) self->on_answer(message);
      },
      [weak = weak_from_this()](const std::string& why) {
        if (const auto self = weak.lock()) self->try_again(why);
      });
  transport::Outgoing message;
  auto resume = message.root().initNodeResume();
  resume.setNode(self_.node.value());
  resume.setIncarnation(self_.incarnation);
  resume.setSecret({self_.secret.data(), self_.secret.size()});
  resume.setReceived(callbacks_.on_reached());
  connection_->send(message);
  answer_limit_.start(kAnswer, [weak = weak_from_this()] {
    if (const auto self = weak.lock())
      self->try_again(fmt::format("no answer within {} s", kAnswer.count()));
  });
}

void HeadRedial::on_answer(wire::Message::Reader answer) {
  if (answer.isShutdown()) {
    const std::string why = answer.getShutdown();
    drop();
    return callbacks_.ended(End::Refused, why);
  }
  if (!answer.isNodeResumed()) return try_again("the head answered with another message");
  answer_limit_.cancel();
  callbacks_.resumed(std::exchange(connection_, nullptr), answer.getNodeResumed());
}

void HeadRedial::try_again(const std::string& why) {
  drop();
  dial_after(next_pause_);
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
  callbacks_.failed(why);
}

void HeadRedial::drop() {
  answer_limit_.cancel();
  if (const auto connection = std::exchange(connection_, nullptr)) connection->close();
}

}  // namespace troupe::node
