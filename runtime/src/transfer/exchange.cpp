#include "transfer/exchange.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "store/codec.hpp"

namespace troupe::transfer {
namespace {

using store::Refusal;

// Times what is brought at a time, with what waits for nodes that cannot be reached.
constexpr std::size_t kOutOfReach = 4;

transport::Caller as_node(const ExchangeOptions& options) {
  return {.role = wire::Role::NODE, .cluster = options.cluster};
}

ExchangeOptions filled_in(ExchangeOptions options) {
  options.pull.self = as_node(options);
  options.pull.key = options.token;
  options.pull.receiver = options.self;
  return options;
}

void answer(const transport::ConnectionPtr& connection, transport::Outgoing message) {
  connection->send(std::move(message));
  connection->finish();
}

void refuse(const transport::ConnectionPtr& connection, const Refusal& why) {
  transport::Outgoing message;
  auto refused = message.root().initTransferRefused();
  refused.setKind(static_cast<std::uint16_t>(why.kind));
  refused.setMessage(why.message);
  answer(connection, std::move(message));
}

}  // namespace

Exchange::Exchange(boost::asio::io_context& loop, store::Service& service, ExchangeOptions options,
                   ToHead to_head)
    : loop_(loop),
      service_(service),
      options_(filled_in(std::move(options))),
      to_head_(std::move(to_head)),
      links_(loop,
             {.as = {.self = as_node(options_),
                     .key = options_.token,
                     .nobody_there = "that node has ended"}},
             [this](NodeId node) { watch_node(node); }) {
  service_.set_remote_client(this, options_.self.node);
}

Exchange::~Exchange() {
  service_.set_remote_client(nullptr, {});
  for (const auto& connection : std::exchange(accepted_, {})) connection->close();
  receiving_.stop();
  sending_.stop();
}

template <class Then>
void Exchange::at_home(Then then) {
  boost::asio::post(loop_, [alive = std::weak_ptr(alive_), then = std::move(then)]() mutable {
    if (!alive.expired()) then();
  });
}

// ---- bringing -----------------------------------------------------------------------------------

void Exchange::fetch(store::Copy copy) {
  const auto object = copy.object;
  if (links_.has_ended(copy.at.node))
    return service_.copied(object, origin_gone(object, copy.into.bytes, copy.at));
  auto window = store::Window::open(*copy.into.arena, copy.into.extent);
  if (const auto* refusal = std::get_if<Refusal>(&window)) return service_.copied(object, *refusal);
  Fetched fetched{.number = ++last_fetched_, .copy = std::move(copy)};
  fetched.window = std::make_shared<store::Window>(std::move(std::get<store::Window>(window)));
  fetched_.insert_or_assign(object, std::move(fetched));
  waiting_.push_back(object);
  start_waiting();
}

void Exchange::start_waiting() {
  while (pulling_ < options_.most_fetched && !waiting_.empty()) {
    const auto found = fetched_.find(waiting_.front());
    waiting_.pop_front();
    if (found != fetched_.end() && !found->second.pull) start_pull(found->second);
  }
}

void Exchange::start_pull(Fetched& fetched) {
  ++pulling_;
  fetched.counts = true;
  const auto& copy = fetched.copy;
  const auto into = fetched.window->bytes().first(copy.into.bytes);
  auto options = options_.pull;
  options.watch = [this, object = copy.object, number = fetched.number](NodeId node) {
    at_home([this, object, number, node] {
      watch_node(node);
      out_of_reach(object, number);
    });
  };
  fetched.pull = std::make_shared<Pull>(
      receiving_.loop(), Pull::Wanted{copy.object, copy.job, copy.at, copy.warm}, into,
      std::move(options),
      [this, object = copy.object, number = fetched.number](std::uint64_t verified) {
        at_home([this, object, number, verified] { progressed(object, number, verified); });
      },
      [this, object = copy.object, number = fetched.number](std::optional<Refusal> failure) {
        at_home([this, object, number, failure = std::move(failure)] {
          fetch_ended(object, number, failure);
        });
      });
  boost::asio::post(receiving_.loop(), [pull = fetched.pull] { pull->start(); });
}

/// What waits for a node behind a cut link lets others go first, up to a limit.
void Exchange::out_of_reach(store::ObjectId object, std::uint64_t number) {
  const auto found = fetched_.find(object);
  if (found == fetched_.end() || found->second.number != number) return;
  if (fetched_.size() - waiting_.size() >= kOutOfReach * options_.most_fetched) return;
  if (std::exchange(found->second.counts, false)) --pulling_;
  start_waiting();
}

void Exchange::progressed(store::ObjectId object, std::uint64_t number, std::uint64_t verified) {
  const auto found = fetched_.find(object);
  if (found == fetched_.end() || found->second.number != number) return;
  found->second.verified = verified;
  for_each_sent(object, [verified](Sending& sending) { sending.available(verified); });
}

void Exchange::fetch_ended(store::ObjectId object, std::uint64_t number,
                           const std::optional<Refusal>& failure) {
  const auto found = fetched_.find(object);
  if (found == fetched_.end() || found->second.number != number) return;
  if (found->second.counts) --pulling_;
  fetched_.erase(found);
  if (failure) for_each_sent(object, [why = *failure](Sending& sending) { sending.refuse(why); });
  service_.copied(object, failure);
  start_waiting();
}

// ---- sending ------------------------------------------------------------------------------------

void Exchange::accept(const transport::ConnectionPtr& connection, const transport::Caller& caller) {
  accepted_.insert(connection);
  connection->hand_over(
      {},
      [this, connection, caller](wire::Message::Reader message) {
        on_message(connection, caller, message);
      },
      [this, connection](const std::string&) { accepted_.erase(connection); });
}

void Exchange::on_message(transport::ConnectionPtr connection, const transport::Caller& caller,
                          wire::Message::Reader message) {
  if (message.isTransferFree()) {
    const auto free = message.getTransferFree();
    if (caller.role == wire::Role::PROCESS && caller.job != store::JobId(free.getJob())) return;
    service_.free(store::JobId(free.getJob()), store::read_object(free.getObject()));
    transport::Outgoing done;
    done.root().setTransferFreed(free.getNumber());
    return connection->send(std::move(done));
  }
  accepted_.erase(connection);
  if (!message.isTransferRequest()) return connection->close();
  const auto wanted = message.getTransferRequest();
  Request request{.object = store::read_object(wanted.getObject()),
                  .job = store::JobId(wanted.getJob()),
                  .bytes = wanted.getBytes(),
                  .from = wanted.getFrom(),
                  .receiver = store::read_node(wanted.getReceiver()),
                  .failed = NodeId(wanted.getFailed())};
  if (caller.role != wire::Role::NODE) request.receiver = {};
  if (caller.role == wire::Role::PROCESS && caller.job != request.job) {
    return transfer::refuse(
        connection, {Refusal::Kind::Invalid, fmt::format("the process is of job {}, not of job {}",
                                                         caller.job, request.job)});
  }
  requested(connection, request);
}

void Exchange::requested(const transport::ConnectionPtr& connection, const Request& request) {
  if (request.from > request.bytes) {
    const auto why = fmt::format("byte {} of {} was asked for", request.from, request.bytes);
    return transfer::refuse(connection, {Refusal::Kind::Invalid, why});
  }
  if (sent_.size() >= options_.most_sent) {
    const auto why = fmt::format("it sends {} objects already", sent_.size());
    return transfer::refuse(connection, {Refusal::Kind::Busy, why});
  }
  if (request.failed) set_unfit(request.object, request.failed);
  if (service_.has(request.job, request.object)) {
    if (const auto onward = choose_onward(request)) {
      note_receiver(request);
      transport::Outgoing message;
      store::write_node(message.root().initTransferSentOn(), *onward);
      return answer(connection, std::move(message));
    }
    note_receiver(request);
  }
  send(connection, request);
}

/// Who has come back from another node is served here: to be sent on again, it could wait for one
/// that waits for it.
std::optional<store::NodeAddress> Exchange::choose_onward(const Request& request) {
  const auto sent = sent_of_.find(request.object);
  if (request.failed || sent == sent_of_.end() || sent->second.size() < options_.receivers)
    return std::nullopt;
  Receiver* best = nullptr;
  for (auto& receiver : receivers_[request.object]) {
    if (!receiver.fit || receiver.at.node == request.receiver.node) continue;
    if (best == nullptr || receiver.sent_on < best->sent_on) best = &receiver;
  }
  if (best == nullptr) return std::nullopt;
  ++best->sent_on;
  return best->at;
}

void Exchange::note_receiver(const Request& request) {
  if (!request.receiver.node || request.receiver.node == options_.self.node) return;
  auto& receivers = receivers_[request.object];
  const auto known = std::ranges::find(receivers, request.receiver.node,
                                       [](const auto& one) { return one.at.node; });
  if (known == receivers.end()) {
    receivers.push_back({.at = request.receiver});
  } else {
    known->fit = true;
  }
}

void Exchange::set_unfit(store::ObjectId object, NodeId node) {
  const auto receivers = receivers_.find(object);
  if (receivers == receivers_.end()) return;
  for (auto& receiver : receivers->second) receiver.fit = receiver.fit && receiver.at.node != node;
}

void Exchange::send(const transport::ConnectionPtr& connection, const Request& request) {
  auto socket = connection->detach();
  if (!socket) return;
  const auto id = ++last_sent_;
  auto& sent = sent_[id];
  sent.request = request;
  sent.sending = std::make_shared<Sending>(
      sending_.loop(), std::move(socket), request.from, options_.sending,
      [this, id](bool complete) { at_home([this, id, complete] { sent_ended(id, complete); }); });
  sent_of_[request.object].push_back(id);
  boost::asio::post(sending_.loop(), [sending = sent.sending] { sending->start(); });

  const auto coming = fetched_.find(request.object);
  if (coming == fetched_.end()) {
    sent.holding = true;
    return service_.hold(request.job, request.object,
                         [this, id, alive = std::weak_ptr(alive_)](
                             const std::variant<store::Held, Refusal>& result) {
                           if (!alive.expired()) held(id, result);
                         });
  }
  const auto& fetched = coming->second;
  if (fetched.copy.job != request.job || !service_.has(request.job, request.object)) {
    return refuse(sent, {Refusal::Kind::Unknown, "it is not had there, or not by that job"});
  }
  service_.hold_copy(request.object);
  sent.pinned = true;
  serve(sent, fetched.copy.into, fetched.window, fetched.verified);
}

void Exchange::held(SentId id, const std::variant<store::Held, Refusal>& result) {
  auto& sent = sent_.at(id);
  sent.holding = false;
  const auto* refusal = std::get_if<Refusal>(&result);
  sent.pinned = refusal == nullptr;
  if (sent.ended) return forget(id);
  if (refusal != nullptr) return refuse(sent, *refusal);
  const auto& held = std::get<store::Held>(result);
  auto window = store::Window::open(*held.arena, held.extent);
  if (const auto* failure = std::get_if<Refusal>(&window)) return refuse(sent, *failure);
  note_receiver(sent.request);
  serve(sent, held, std::make_shared<store::Window>(std::move(std::get<store::Window>(window))),
        held.bytes);
}

void Exchange::serve(Sent& sent, const store::Held& held,
                     std::shared_ptr<const store::Window> window, std::uint64_t available) {
  if (held.bytes != sent.request.bytes) {
    return refuse(sent,
                  {Refusal::Kind::Invalid,
                   fmt::format("object {} has {} bytes, and {} were asked for",
                               to_string(sent.request.object), held.bytes, sent.request.bytes)});
  }
  Source source{held.arena, std::move(window), held.extent.offset, held.bytes};
  boost::asio::post(sending_.loop(),
                    [sending = sent.sending, source = std::move(source), available]() mutable {
                      sending->serve(std::move(source), available);
                    });
}

void Exchange::refuse(Sent& sent, const Refusal& why) {
  boost::asio::post(sending_.loop(), [sending = sent.sending, why] { sending->refuse(why); });
}

void Exchange::sent_ended(SentId id, bool complete) {
  auto& sent = sent_.at(id);
  if (!complete) set_unfit(sent.request.object, sent.request.receiver.node);
  auto& ids = sent_of_[sent.request.object];
  std::erase(ids, id);
  if (ids.empty()) sent_of_.erase(sent.request.object);
  sent.ended = true;
  if (!sent.holding) forget(id);
}

void Exchange::forget(SentId id) {
  const auto sent = std::move(sent_.extract(id).mapped());
  if (sent.pinned) service_.release(sent.request.job, sent.request.object);
}

template <class Then>
void Exchange::for_each_sent(store::ObjectId object, Then then) {
  const auto sent = sent_of_.find(object);
  if (sent == sent_of_.end()) return;
  for (const auto id : sent->second) {
    boost::asio::post(sending_.loop(), [sending = sent_.at(id).sending, then] { then(*sending); });
  }
}

// ---- freeing ------------------------------------------------------------------------------------

void Exchange::freed(store::JobId job, store::ObjectId object, bool is_copy) {
  for_each_sent(object, [](Sending& sending) { sending.stop(); });
  const auto receivers = receivers_.extract(object);
  if (receivers && !is_copy) {
    for (const auto& receiver : receivers.mapped()) links_.free(receiver.at, job, object);
  }
  const auto found = fetched_.find(object);
  if (found == fetched_.end()) return;
  const Refusal gone{Refusal::Kind::Unknown, fmt::format("object {} was freed", to_string(object))};
  const auto number = found->second.number;
  if (!found->second.pull) return fetch_ended(object, number, gone);
  boost::asio::post(receiving_.loop(), [this, pull = found->second.pull, object, number, gone] {
    pull->cancel();
    at_home([this, object, number, gone] { fetch_ended(object, number, gone); });
  });
}

void Exchange::free(store::JobId job, store::ObjectId object, const store::NodeAddress& at) {
  links_.free(at, job, object);
}

// ---- what the head knows ------------------------------------------------------------------------

void Exchange::watch(store::ProcessId owner) {
  if (!watched_.insert(owner).second || !to_head_) return;
  transport::Outgoing message;
  message.root().setOwnerWatch(owner.value());
  to_head_(message);
}

void Exchange::watch_node(NodeId node) {
  if (!to_head_) return;
  transport::Outgoing message;
  message.root().setNodeWatch(node.value());
  to_head_(message);
}

void Exchange::node_ended(NodeId node) {
  links_.node_ended(node);
  for (const auto& [object, fetched] : fetched_) {
    if (fetched.pull && fetched.copy.at.node == node)
      boost::asio::post(receiving_.loop(), [pull = fetched.pull] { pull->ended(); });
  }
}

void Exchange::orphaned(store::ProcessId owner, const std::vector<store::ObjectId>& objects) {
  if (!to_head_) return;
  transport::Outgoing message;
  auto orphans = message.root().initOrphaned();
  orphans.setOwner(owner.value());
  orphans.setWriter(objects.front().process.value());
  auto numbers = orphans.initNumbers(static_cast<unsigned>(objects.size()));
  for (unsigned i = 0; i < numbers.size(); ++i) numbers.set(i, objects[i].number);
  to_head_(message);
}

bool Exchange::on_head_message(wire::Message::Reader message) {
  if (message.isNodeEnded()) {
    node_ended(NodeId(message.getNodeEnded()));
    return true;
  }
  if (!message.isOwnerEnded()) return false;
  watched_.erase(store::ProcessId(message.getOwnerEnded()));
  service_.owner_ended(store::ProcessId(message.getOwnerEnded()));
  return true;
}

}  // namespace troupe::transfer
