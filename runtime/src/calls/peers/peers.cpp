#include "calls/peers/peers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <kj/exception.h>

#include "calls/death_codec.hpp"
#include "log/log.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

/// What is in the way of sending a message, whatever becomes of connections.
std::optional<Failure> why_not_sent(ProcessId to, std::size_t bytes, std::size_t kept) {
  if (bytes > transport::Limits{}.frame_bytes) {
    return Failure{.kind = Failure::Kind::TooLarge,
                   .message = fmt::format("a message of {} bytes was to be sent to process {}, and "
                                          "the limit is {}: pass the values in pieces",
                                          bytes, to, transport::Limits{}.frame_bytes)};
  }
  if (kept + bytes <= Peers::kMostKept) return std::nullopt;
  return Failure{
      .kind = Failure::Kind::Disconnected,
      .message = fmt::format(
          "process {} does not keep up: {} bytes wait to be received there, and {} more were to be "
          "sent; the limit is {}: wait for results before more calls are made",
          to, kept, bytes, Peers::kMostKept)};
}

}  // namespace

Peers::Peers(Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      channels_(
          {.loop = callbacks_.loop,
           .executor = callbacks_.executor,
           .send = [this](ProcessId process,
                          transport::Outgoing&& message) { post(process, std::move(message)); },
           .send_outcome = callbacks_.send_outcome,
           .ended =
               [this](ProcessId process) {
                 if (auto* ended = find(process)) ended->ended_here = true;
                 ask_fate(process, "its process has ended");
               },
           .damaged = [this](ProcessId process) { damaged(process); },
           .opened = callbacks_.on_channel}),
      link_callbacks_(link_callbacks()),
      ack_timer_(callbacks_.loop) {}

PeerLink::Callbacks Peers::link_callbacks() {
  using transport::ConnectionPtr;
  return {
      .loop = callbacks_.loop,
      .dial = [this](const AddressPtr& to, const PeerLink::Opened& opened,
                     const PeerLink::Denied& denied) { dial(to, opened, denied); },
      .deliver = [this](ProcessId process,
                        wire::Message::Reader message) { deliver(process, message); },
      .on_opening =
          [this](ProcessId process, const ConnectionPtr& connection,
                 wire::Message::Reader message) {
            channels_.receive(connection, process, message);
          },
      .on_opened = [this](ProcessId process,
                          const ConnectionPtr& opened) { channels_.connected(process, opened); },
      .on_closed = [this](ProcessId process,
                          const ConnectionPtr& closed) { channels_.disconnected(process, closed); },
      .on_broken = [this](ProcessId process, const std::string& why) { broken(process, why); },
      .on_unreachable = [this](ProcessId process,
                               const std::string& why) { unreachable(process, why); },
      .on_stuck = [this](ProcessId process, const std::string& why) { stuck(process, why); },
      .on_replies_arrived =
          [this](ProcessId process, ReplyPlace last) {
            callbacks_.executor.on_replies_arrived(process, last);
          },
      .on_owed = [this] { acknowledge_soon(); },
  };
}

Peers::Peer* Peers::find(ProcessId process) {
  const auto found = peers_.find(process);
  return found == peers_.end() ? nullptr : &found->second;
}

Peers::Peer& Peers::peer(ProcessId process) {
  auto& found = peers_[process];
  if (!found.link) found.link = std::make_shared<PeerLink>(process, link_callbacks_);
  return found;
}

const Failure* Peers::why_gone(ProcessId process) {
  if (ended_) return &*ended_;
  const auto* known = find(process);
  if (!known) return deaths_.find(process);
  return known->dying ? &known->dying->how : nullptr;
}

// ---- sending ------------------------------------------------------------------------------------

std::uint64_t Peers::request(const AddressPtr& to, const Fill& fill, Done done) {
  const auto id = ++last_id_;
  if (const auto* gone = why_gone(to->process)) {
    done(*gone, Progress::NotBegun, {});
    return id;
  }
  transport::Outgoing message;
  fill(message.root(), id);
  auto& target = peer(to->process);
  if (auto failure = why_not_sent(to->process, message.body().size(), target.link->kept_bytes())) {
    done(std::move(*failure), std::nullopt, {});
    return id;
  }
  target.in_flight.add(id, std::move(done));
  target.link->send(std::move(message), id);
  target.link->reach(to);
  return id;
}

void Peers::send(const AddressPtr& to, const Fill& fill) {
  if (why_gone(to->process)) return;
  transport::Outgoing message;
  fill(message.root(), 0);
  auto& target = peer(to->process);
  target.link->send(std::move(message), 0);
  target.link->reach(to);
}

bool Peers::answer_to(ProcessId process, std::size_t bytes,
                      const std::function<void(wire::Message::Builder)>& fill, ReplyPlace kept) {
  auto* asking = find(process);
  if (!asking || asking->dying || ended_) return false;
  transport::Outgoing message(bytes);
  fill(message.root());
  asking->link->send(std::move(message), 0, kept);
  return true;
}

void Peers::write_out(ProcessId process, std::function<void()> done) {
  if (auto* answered = find(process)) return answered->link->write_out(std::move(done));
  done();
}

void Peers::post(ProcessId to, transport::Outgoing&& message) {
  if (auto* target = find(to)) target->link->send(std::move(message), 0);
}

// ---- connections --------------------------------------------------------------------------------

void Peers::dial(const AddressPtr& to, const PeerLink::Opened& opened,
                 const PeerLink::Denied& denied) {
  transport::Endpoint endpoint;
  if (to->machine == callbacks_.self->machine && !to->unix_name.empty()) {
    endpoint.unix_name = to->unix_name;
  } else {
    endpoint.host = to->host;
    endpoint.port = to->port;
  }
  transport::ClientOptions options;
  options.self = {.role = wire::Role::PROCESS,
                  .cluster = callbacks_.cluster,
                  .job = to->access ? to->access->job : callbacks_.job,
                  .process = callbacks_.self->process,
                  .subject = to->process};
  options.key = to->access ? to->access->key : callbacks_.job_key;
  options.timeout = kPeerHandshake;
  options.awaits_welcome = false;
  transport::connect(
      callbacks_.loop, endpoint, options,
      [opened](transport::ConnectionPtr connection, const transport::Accepted&) {
        opened(std::move(connection));
      },
      [denied](const transport::Denied& why) { denied(why.why); });
}

void Peers::adopt(const transport::ConnectionPtr& connection, ProcessId caller) {
  if (ended_ || has_died(caller)) return connection->close();
  peer(caller).link->adopt(connection);
}

void Peers::close() {
  for (auto& [process, peer] : peers_) peer.link->close();
}

void Peers::acknowledge_soon() {
  if (std::exchange(acks_owed_, true)) return;
  ack_timer_.expires_after(kAckPause);
  ack_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    acks_owed_ = false;
    for (auto& [process, peer] : peers_) peer.link->acknowledge();
  });
}

// ---- the end of a process -----------------------------------------------------------------------

void Peers::broken(ProcessId process, const std::string& why) {
  const auto* known = find(process);
  if (known && known->dying) return lost(process, *known->dying, true);
  ask_fate(process, why);
}

void Peers::ask_fate(ProcessId process, const std::string& symptom) {
  auto* asked = find(process);
  if (!asked || asked->dying || std::exchange(asked->asking, true)) return;
  auto answered = [this, process, symptom](const Death& death) {
    if (death.how.kind != Failure::Kind::Disconnected) return died(process, death);
    auto* lives = find(process);
    if (!lives) return;
    lives->asking = false;
    if (lives->ended_here) ask_fate(process, symptom);  // its node has not noticed yet
  };
  auto refused = [this, process, symptom](Failure how) {
    how.message += " (" + symptom + ")";
    lost(process, Death(std::move(how)), false);
  };
  callbacks_.head.request(
      [process](wire::HeadRequest::Builder ask) { ask.setFate(process.value()); },
      [answered](wire::HeadNotice::Reader tell) { answered(read_death(tell, tell.getFate())); },
      refused);
}

/// Its report travels beside what it sent: an answer that lies unread in a socket is an answer, and
/// a ref that it passed on there counts.
void Peers::died(ProcessId process, const Death& death) {
  auto* dying = find(process);
  if (!dying) return lost(process, death, true);
  if (dying->dying) return;
  dying->link->stop();
  if (!dying->link->is_open() || !death.calls) return lost(process, death, true);
  dying->dying = death;
  wait_for_last_words(process, *dying);
}

void Peers::wait_for_last_words(ProcessId process, Peer& peer) {
  peer.last_words = std::make_unique<transport::asio::steady_timer>(callbacks_.loop, kLastWords);
  peer.last_words->async_wait([this, process](const boost::system::error_code& error) {
    const auto* dying = error ? nullptr : find(process);
    if (!dying || !dying->dying) return;
    // Where this process stood still, the time is over before its sockets were looked at.
    const auto link = dying->link;
    link->drain();
    dying = find(process);
    if (dying && dying->dying) lost(process, *dying->dying, true);
  });
}

/// `confirmed`: the process has ended; else the cluster has, and nobody can say.
void Peers::lost(ProcessId process, const Death& end, bool confirmed) {
  const auto death = end;  // what it refers to may be this peer's own
  if (has_died(process)) return;
  deaths_.put(process, death.how);
  callbacks_.exports.forget(process);
  callbacks_.executor.on_caller_ended(process);
  auto known = peers_.extract(process);
  // What it had finished counts, also where it could not say so any more.
  channels_.answer(process, death.replies);
  if (!known.empty()) known.mapped().in_flight.answer(death.replies);
  channels_.lost(process, death.how, confirmed);
  if (!known.empty()) {
    auto& peer = known.mapped();
    const auto last_sent = peer.link->last_request_handed();
    peer.link->close();
    peer.in_flight.lose_all(death.how, [&](std::uint64_t id) {
      return id <= last_sent ? death.of(id) : Progress::NotBegun;
    });
  }
  callbacks_.on_lost(process);
}

void Peers::end(const Failure& why) {
  ended_ = why;
  std::vector<ProcessId> all;
  for (const auto& [process, peer] : peers_) all.push_back(process);
  for (const auto process : all) lost(process, Death(why), false);
}

// ---- processes that live ------------------------------------------------------------------------

/// What was asked of it may have been done or may be under way, and its answers would come too
/// late. Refs stay.
void Peers::unreachable(ProcessId process, const std::string& why) {
  auto* far = find(process);
  if (!far) return;
  const Failure how{.kind = Failure::Kind::Disconnected,
                    .message = fmt::format(
                        "process {} has not been reached for {} s, though it is not known to have "
                        "ended ({}): check the network and the firewalls between the two machines",
                        process, PeerLink::kPatience.count(), why)};
  far->link->give_up_requests(how);
  const auto last_sent = far->link->last_request_handed();
  far->in_flight.lose_all(how, [last_sent](std::uint64_t id) {
    return id <= last_sent ? Progress::Unknown : Progress::NotBegun;
  });
}

void Peers::stuck(ProcessId process, const std::string& why) {
  auto* far = find(process);
  if (!far) return;
  const Failure how{
      .kind = Failure::Kind::Disconnected,
      .message = fmt::format("a message between process {} and process {} was sent through {} "
                             "connections, each of which broke before it had arrived; the last: {}",
                             callbacks_.self->process, process, PeerLink::kMostInVain, why)};
  const auto first = far->link->give_up_first(how);
  if (!first) return;
  log::warn(how.message);
  far->in_flight.lose(first->request, how, Progress::Unknown);
  if (first->call != 0) channels_.answer(process, first->call, how, {});
}

void Peers::close_channels(ProcessId process, const std::string& why) {
  channels_.lost(process, Failure{.kind = Failure::Kind::Disconnected, .message = why}, false);
}

/// It lives: what was in the rings has no answer that could be believed, and all else goes on
/// through the socket.
void Peers::damaged(ProcessId process) {
  transport::Outgoing message;
  message.root().setChannelEnd();
  post(process, std::move(message));
  close_channels(process,
                 fmt::format("the memory shared with process {} holds what neither side writes "
                             "there: one of the two programs writes where it must not",
                             process));
}

// ---- messages -----------------------------------------------------------------------------------

/// A message that cannot be read counts as received: sent again it would be no better.
void Peers::deliver(ProcessId process, wire::Message::Reader message) {
  try {
    dispatch(process, message);
  } catch (const kj::Exception& error) {
    const auto why = fmt::format("process {} sent a malformed message: {}", process,
                                 error.getDescription().cStr());
    log::warn(why);
    refuse(process, message, why);
  }
}

void Peers::dispatch(ProcessId process, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::REPLY:
      if (const auto reply = message.getReply(); ChannelCallId::is(reply.getId()))
        return channels_.answer(process, reply.getId(), read(reply.getOutcome()),
                                std::chrono::nanoseconds(reply.getRunNs()));
      return answer(process, message.getReply().getId(), read(message.getReply().getOutcome()),
                    std::chrono::nanoseconds(message.getReply().getRunNs()));
    case wire::Message::FETCHED:
      return answer(process, message.getFetched().getId(), read(message.getFetched().getOutcome()));
    case wire::Message::RENDEZVOUSED:
      return answer(process, message.getRendezvoused().getId(), read(message.getRendezvoused()));
    case wire::Message::CHANNEL_START:
      return channels_.started(process);
    case wire::Message::CHANNEL_END:
      return close_channels(process,
                            fmt::format("process {} has found the memory that is shared with it "
                                        "damaged: one of the two programs writes where it must not",
                                        process));
    default:
      return callbacks_.on_request(process, message);
  }
}

void Peers::refuse(ProcessId process, wire::Message::Reader message, const std::string& why) {
  const Failure how{.kind = Failure::Kind::Disconnected, .message = why};
  try {
    switch (message.which()) {
      case wire::Message::CALL:
        return callbacks_.send_outcome(process, message.getCall().getId(), how, {}, 0);
      case wire::Message::REPLY:
        if (const auto id = message.getReply().getId(); ChannelCallId::is(id))
          return channels_.answer(process, id, how, {});
        return answer(process, message.getReply().getId(), how);
      case wire::Message::FETCHED:
        return answer(process, message.getFetched().getId(), how);
      default:
        return;
    }
  } catch (const kj::Exception&) {
    return;  // not even its kind can be read: nobody waits for it who could be told
  }
}

void Peers::answer(ProcessId process, std::uint64_t id, Outcome outcome,
                   std::chrono::nanoseconds run_time) {
  if (auto* from = find(process)) from->in_flight.answer(id, std::move(outcome), run_time);
}

Outcome Peers::read(wire::Outcome::Reader from) {
  if (from.isFailure()) return read_failure(from.getFailure());
  return callbacks_.exports.read(from.getValue());
}

Outcome Peers::read(wire::RendezvousReply::Reader from) {
  if (from.isFailure()) return read_failure(from.getFailure());
  detail::Payload value;
  value.bytes.assign(reinterpret_cast<const char*>(from.getValue().begin()),
                     from.getValue().size());
  return value;
}

}  // namespace troupe::runtime
