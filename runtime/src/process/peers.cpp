#include "process/peers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "process/codec.hpp"

namespace troupe::process {

Peers::Peers(Ways ways)
    : ways_(std::move(ways)),
      channels_({.loop = ways_.loop,
                 .executor = ways_.executor,
                 .send_outcome = ways_.send_outcome,
                 .ended = [this](ProcessId process) { ask_fate(process, "its process has ended"); },
                 .damaged = [this](ProcessId process) { damaged(process); },
                 .opened = ways_.on_channel}) {}

Peers::Peer& Peers::peer(const AddressPtr& to) {
  auto [found, fresh] = peers_.try_emplace(to->process);
  if (fresh) {
    found->second.address = to;
    connect(found->second);
  }
  return found->second;
}

std::uint64_t Peers::request(const AddressPtr& to, const Fill& fill, Done done) {
  const auto id = ++last_id_;
  auto& target = peer(to);
  if (target.dead || target.dying) {
    done(target.dead ? *target.dead : target.dying->how, Progress::NotBegun, {});
    return id;
  }
  transport::Outgoing message;
  fill(message.root(), id);
  target.in_flight.emplace(id, std::move(done));
  post(target, id, std::move(message));
  return id;
}

void Peers::send(const AddressPtr& to, const Fill& fill) {
  auto& target = peer(to);
  if (target.dead || target.dying) return;
  transport::Outgoing message;
  fill(message.root(), 0);
  post(target, 0, std::move(message));
}

void Peers::post(Peer& peer, std::uint64_t id, transport::Outgoing message) {
  if (!peer.connection) return peer.queued.emplace_back(id, std::move(message)), void();
  peer.connection->send(message);
  peer.last_sent = std::max(peer.last_sent, id);
}

void Peers::connect(Peer& peer) {
  const auto& to = *peer.address;
  transport::Endpoint endpoint;
  if (to.machine == ways_.self->machine && !to.unix_name.empty()) {
    endpoint.unix_name = to.unix_name;
  } else {
    endpoint.host = to.host;
    endpoint.port = to.port;
  }
  transport::ClientOptions options;
  options.self = {.role = wire::Role::PROCESS,
                  .cluster = ways_.cluster,
                  .job = ways_.job,
                  .process = ways_.self->process,
                  .subject = to.process};
  options.key = ways_.job_key;
  options.timeout = kPeerHandshake;
  options.awaits_welcome = false;
  transport::connect(
      ways_.loop, endpoint, options,
      [this, process = to.process](transport::ConnectionPtr connection, const transport::Accepted&) {
        opened(process, std::move(connection));
      },
      [this, process = to.process](const transport::Denied& denied) { ask_fate(process, denied.why); });
}

void Peers::opened(ProcessId process, transport::ConnectionPtr connection) {
  auto found = peers_.find(process);
  if (found == peers_.end()) return connection->close();
  auto& peer = found->second;
  if (peer.connection || peer.dead || peer.asking) {  // it is asked about for the connection before this one
    extra_.push_back(connection);
  } else {
    peer.connection = connection;
    for (auto& [id, message] : std::exchange(peer.queued, {})) post(peer, id, std::move(message));
    channels_.connected(process, connection);
  }
  connection->hand_over(
      transport::Limits{},
      [this, process, weak = std::weak_ptr(connection)](wire::Message::Reader message) {
        if (auto self = weak.lock()) receive(self, process, message);
      },
      [this, process, weak = std::weak_ptr(connection)](const std::string& why) {
        auto closed = weak.lock();
        std::erase(extra_, closed);
        auto entry = peers_.find(process);
        if (entry == peers_.end() || entry->second.connection != closed) return;
        entry->second.connection = nullptr;
        if (entry->second.dying) return lost(process, *entry->second.dying);
        ask_fate(process, why);
      });
}

void Peers::adopt(const transport::ConnectionPtr& connection, ProcessId caller) {
  peers_.try_emplace(caller);
  opened(caller, connection);
}

void Peers::ask_fate(ProcessId process, const std::string& symptom) {
  auto found = peers_.find(process);
  if (found == peers_.end() || found->second.dead || std::exchange(found->second.asking, true)) return;
  auto answered = [this, process, symptom](Death death) {
    const bool lives = death.how.kind == Failure::Kind::Disconnected;
    if (!lives) return died(process, death);
    death.how.message += " (" + symptom + ")";
    lost(process, death);
    peers_.erase(process);  // it may be reached again
  };
  ways_.head.ask([process](wire::Ask::Builder ask) { ask.setFate(process); },
                 [answered](wire::Tell::Reader tell) { answered(read_death(tell, tell.getFate())); },
                 [answered](const Failure& refused) { answered(Death(refused)); });
}

/// It lives, and may be reached again; what was in flight has no answer that could be believed.
void Peers::damaged(ProcessId process) {
  lost(process,
       Failure{.kind = Failure::Kind::Disconnected,
               .message = fmt::format("the memory shared with process {} holds what neither side writes there: one of "
                                      "the two programs writes where it must not",
                                      process)});
  peers_.erase(process);
}

/// Its report travels beside what it sent: an answer that lies unread in a socket is an answer.
void Peers::died(ProcessId process, const Death& death) {
  const auto found = peers_.find(process);
  if (found == peers_.end()) return lost(process, death);
  auto& peer = found->second;
  if (peer.dead || peer.dying) return;
  const bool waits = !peer.in_flight.empty() || channels_.in_flight(process) != 0;
  if (!peer.connection || !waits || !death.calls) return lost(process, death);
  peer.dying = death;
  wait_for_last_words(process, peer);
}

void Peers::wait_for_last_words(ProcessId process, Peer& peer) {
  peer.last_words = std::make_unique<transport::asio::steady_timer>(ways_.loop, kLastWords);
  peer.last_words->async_wait([this, process](const boost::system::error_code& error) {
    if (error) return;
    const auto found = peers_.find(process);
    if (found != peers_.end() && found->second.dying) lost(process, Death(*found->second.dying));
  });
}

void Peers::lost(ProcessId process, const Death& end) {
  const auto death = end;  // what it refers to may be this peer's own
  const bool ended = death.how.kind != Failure::Kind::Disconnected;
  ways_.exports.forget(process);
  auto& peer = peers_[process];
  if (peer.dead) return;
  peer.dead = death.how;
  peer.dying.reset();
  peer.last_words.reset();
  peer.queued.clear();
  channels_.lost(process, death.how, ended);
  if (auto connection = std::exchange(peer.connection, nullptr)) connection->close();
  for (auto& [id, done] : std::exchange(peer.in_flight, {})) {
    done(death.how, id <= peer.last_sent ? death.of(id) : Progress::NotBegun, {});
  }
  ways_.on_lost(process);
}

bool Peers::may_answer(ProcessId process) const {
  const auto found = peers_.find(process);
  return found != peers_.end() && !found->second.dead;
}

transport::ConnectionPtr Peers::connection(ProcessId process) const {
  auto found = peers_.find(process);
  return found == peers_.end() ? nullptr : found->second.connection;
}

void Peers::end(const Failure& why) {
  std::vector<ProcessId> all;
  for (const auto& [process, peer] : peers_) all.push_back(process);
  for (const auto process : all) lost(process, why);
}

void Peers::close() {
  for (auto& [process, peer] : peers_) {
    if (peer.connection) peer.connection->close();
  }
  for (auto& connection : extra_) connection->close();
}

void Peers::receive(const transport::ConnectionPtr& connection, ProcessId process, wire::Message::Reader message) {
  if (channels_.receive(connection, process, message)) return;
  switch (message.which()) {
    case wire::Message::REPLY:
      if (const auto reply = message.getReply(); DirectId::is(reply.getId()))
        return channels_.answer(process, reply.getId(), read(reply.getOutcome()),
                                std::chrono::nanoseconds(reply.getRunNs()));
      return answer(process, message.getReply().getId(), read(message.getReply().getOutcome()),
                    std::chrono::nanoseconds(message.getReply().getRunNs()));
    case wire::Message::FETCHED:
      return answer(process, message.getFetched().getId(), read(message.getFetched().getOutcome()));
    case wire::Message::RENDEZVOUSED:
      return answer(process, message.getRendezvoused().getId(), read(message.getRendezvoused()));
    default:
      return ways_.on_request(connection, process, message);
  }
}

void Peers::answer(ProcessId process, std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time) {
  auto found = peers_.find(process);
  if (found == peers_.end()) return;
  auto pending = found->second.in_flight.extract(id);
  if (!pending.empty()) pending.mapped()(std::move(outcome), std::nullopt, run_time);
}

Outcome Peers::read(wire::Outcome::Reader from) {
  if (from.isFailure()) return read_failure(from.getFailure());
  return ways_.exports.read(from.getValue());
}

Outcome Peers::read(wire::RendezvousReply::Reader from) {
  if (from.getFailure().size() != 0) return Failure{.kind = Failure::Kind::Refused, .message = from.getFailure()};
  detail::Payload value;
  value.bytes.assign(reinterpret_cast<const char*>(from.getValue().begin()), from.getValue().size());
  return value;
}

}  // namespace troupe::process
