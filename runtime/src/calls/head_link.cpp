#include "calls/head_link.hpp"

#include <utility>

#include "wire/codec.hpp"

namespace troupe::runtime {

void HeadLink::disconnect(const Failure& why) {
  if (!gone_) gone_ = why;
  connection_.reset();
  for (auto& [id, pending] : std::exchange(pending_, {})) pending.refused(*gone_);
}

void HeadLink::send(HeadRequestId id, const Fill& fill) {
  if (!connection_) return;
  transport::Outgoing message;
  auto ask = message.root().initHeadRequest();
  ask.setId(id.value());
  fill(ask);
  connection_->send(message);
}

HeadRequestId HeadLink::request(const Fill& fill, Granted granted, Refused refused) {
  const auto id = ++last_id_;
  if (gone_) {
    refused(*gone_);
    return id;
  }
  pending_.emplace(id, Pending{std::move(granted), std::move(refused)});
  send(id, fill);
  return id;
}

void HeadLink::notify(const Fill& fill) { send({}, fill); }

void HeadLink::withdraw(HeadRequestId id) {
  if (pending_.erase(id) == 0) return;
  notify([id](wire::HeadRequest::Builder request) { request.setWithdraw(id.value()); });
}

bool HeadLink::answer(wire::HeadNotice::Reader tell) {
  auto found = pending_.find(HeadRequestId(tell.getId()));
  if (tell.getId() == 0 || found == pending_.end()) return false;
  auto pending = std::move(found->second);
  pending_.erase(found);
  if (tell.isRefused()) {
    pending.refused(read_failure(tell.getRefused()));
  } else {
    pending.granted(tell);
  }
  return true;
}

}  // namespace troupe::runtime
