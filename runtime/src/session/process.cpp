#include "session/process.hpp"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "calls/death_codec.hpp"
#include "ids/session.hpp"
#include "log/log.hpp"
#include "objects/stored.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

/// The last handle of a borrowed object is gone; any thread.
void release_borrowed(AddressPtr owner, std::uint64_t object) {
  auto* process = Process::maybe();
  if (!process) return;
  process->post([owner = std::move(owner), object] {
    auto* here = Process::maybe();
    if (!here) return;
    here->peers().send(owner, [&](wire::Message::Builder message, std::uint64_t) {
      auto borrow = message.initBorrow();
      borrow.setObject(object);
      borrow.setProcess(here->identity().self->process);
      borrow.setDelta(-1);
    });
  });
}

AddressPtr only_id(ProcessId process) { return std::make_shared<const Address>(Address{.process = process}); }

Failure head_gone(const std::string& why) {
  return {.kind = Failure::Kind::Disconnected,
          .message = fmt::format("the cluster is gone: {}; its head has ended or cannot be reached: see what it said "
                                 "last, start it again, then this program",
                                 why)};
}

/// Of what one message carries of it.
std::size_t bytes_of(const Outcome& outcome) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  return value && value->bytes.size() <= kLargestValue ? value->bytes.size() : 0;
}

std::string place_of(const Address& self) {
  const auto pid = " (pid " + std::to_string(getpid()) + ")";
  if (self.node == 0) return "driver" + pid;
  return "process " + std::to_string(self.process) + pid + " on node " + std::to_string(self.node);
}

}  // namespace

Process& Process::current() { return static_cast<Process&>(ProcessContext::current()); }

Process::Process(boost::asio::io_context& loop, Identity identity, transport::ConnectionPtr head, Strangers strangers,
                 std::function<void(StoreLink::Connected)> to_store)
    : loop_(loop),
      identity_(std::move(identity)),
      strangers_(std::move(strangers)),
      acceptor_(loop, "", {}, nullptr),
      store_link_({.loop = loop_,
                   .self = identity_.self,
                   .connect = std::move(to_store),
                   .orphaned = [this](const auto& objects) { orphans_.named(objects, nullptr); },
                   .watch_node = [this](std::uint32_t node) { watch_node(node); },
                   .to_nodes = {.self = {.role = wire::Role::PROCESS,
                                         .cluster = identity_.cluster,
                                         .job = identity_.job,
                                         .process = identity_.self->process,
                                         .subject = 0},
                                .key = identity_.job_key,
                                .nobody_there = "the node that has it has ended"}}),
      held_values_(loop_, head_),
      exports_({.self = identity_.self,
                .send_borrow =
                    [this](const AddressPtr& owner, std::uint64_t object, ProcessId holder, std::int64_t delta) {
                      peers_.send(owner, [&](wire::Message::Builder message, std::uint64_t) {
                        auto borrow = message.initBorrow();
                        borrow.setObject(object);
                        borrow.setProcess(holder);
                        borrow.setDelta(delta);
                      });
                    },
                .release = &release_borrowed,
                .held =
                    [this](bool any) {
                      if (identity_.self->node != 0) held_values_.changed(any);  // a driver is not stopped for idleness
                    },
                .has_ended = [this](ProcessId process) { return peers_.has_died(process); }}),
      orphans_({.may_answer = [this](ProcessId writer) { return peers_.may_answer(writer); },
                .is_known = [this](store::ObjectId object) { return exports_.has_stored(object); },
                .free = [this](const store::Wanted& place) { store_link_.free(place); }}),
      executor_(loop_, place_of(*identity_.self)),
      peers_(
          {.loop = loop_,
           .self = identity_.self,
           .job = identity_.job,
           .job_key = identity_.job_key,
           .cluster = identity_.cluster,
           .head = head_,
           .exports = exports_,
           .executor = executor_,
           .on_request = [this](ProcessId caller, wire::Message::Reader message) { on_request(caller, message); },
           .send_outcome = [this](ProcessId caller, std::uint64_t call, const Outcome& outcome,
                                  std::chrono::nanoseconds run_time) { send_outcome(caller, call, outcome, run_time); },
           .on_lost = [this](ProcessId process) { orphans_.lost(process); },
           .on_channel = [this](const OutChannelPtr& channel) { tasks_.channel_opened(channel); }}),
      resolver_(peers_),
      calls_(peers_, exports_, identity_.self),
      tasks_(loop_, head_, calls_, resolver_),
      actors_(loop_, head_, calls_, resolver_) {
  head_.connect(std::move(head));
  make_current(this);
  begin_session();
}

Process::~Process() {
  end_session();
  make_current(nullptr);
}

void Process::give_cpu_back() {
  post([this] { head_.post([](wire::Ask::Builder ask) { ask.setBlocked(); }); });
}

detail::ObjectPtr Process::take_cpu_again() {
  auto resumed = detail::Object::pending(0);
  post([this, resumed] {
    head_.ask([](wire::Ask::Builder ask) { ask.setUnblocked(); },
              [resumed](wire::Tell::Reader) { resumed->complete(detail::Payload{}); },
              [resumed](const Failure& failure) { resumed->complete(failure); });
  });
  return resumed;
}

void Process::accept(transport::Socket socket) {
  transport::ServerOptions options;
  options.cluster = identity_.cluster;
  options.timeout = kPeerHandshake;
  options.refuse = [this](const transport::Caller& caller) -> std::string {
    if (caller.role != wire::Role::PROCESS) return strangers_.refuse(caller);
    if (caller.subject != identity_.self->process) {
      return fmt::format("this is process {}, not {}: the one you look for has ended", identity_.self->process,
                         caller.subject);
    }
    return caller.job == identity_.job ? ""
                                       : fmt::format("this process serves job {}, not {}", identity_.job, caller.job);
  };
  options.key = [this](const transport::Caller& caller) {
    return caller.role == wire::Role::PROCESS ? identity_.job_key : strangers_.key;
  };
  acceptor_.accept(std::move(socket), std::move(options),
                   [this](transport::ConnectionPtr connection, const transport::Accepted& who) {
                     if (who.caller.role == wire::Role::PROCESS) return peers_.adopt(connection, who.caller.process);
                     // Held by its own handlers until the stranger closes it.
                     connection->hand_over(
                         {},
                         [this, connection](wire::Message::Reader message) { strangers_.serve(connection, message); },
                         [](const std::string&) {});
                   });
}

// ---- from other processes --------------------------------------------------------------------------------------

void Process::on_request(ProcessId caller, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::CALL:
      return on_call(caller, message.getCall());
    case wire::Message::FETCH:
      return on_fetch(caller, message.getFetch());
    case wire::Message::BORROW:
      return exports_.borrow(message.getBorrow().getObject(), message.getBorrow().getProcess(),
                             message.getBorrow().getDelta());
    case wire::Message::RENDEZVOUS:
      return on_rendezvous(caller, message.getRendezvous());
    case wire::Message::CANCEL:
      return on_cancel(caller, message.getCancel());
    default:
      return;  // of a later protocol; the handshake keeps those away
  }
}

void Process::write_outcome(wire::Outcome::Builder into, const Outcome& outcome, ProcessId to) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  if (!value) return write_failure(into.initFailure(), std::get<Failure>(outcome));
  if (value->bytes.size() > kLargestValue)
    return write_failure(into.initFailure(), too_large("a value", value->bytes.size()));
  if (value->stored) store_link_.flush();  // whoever hears of it finds it, also where this process ends now
  exports_.write(into.initValue(), *value, only_id(to));
}

/// Its caller has been told that it failed. What its arguments refer to is let go; its place in a channel is passed over.
void Process::on_given_up_call(ProcessId caller, wire::Call::Reader call) {
  for (auto argument : call.getArgs()) exports_.read(argument);
  if (!DirectId::is(call.getId())) return;
  executor_.push({.caller = caller,
                  .stage = std::make_shared<std::atomic<Work::Stage>>(Work::Stage::GivenUp),
                  .place = Work::Place{.caller = caller, .call = call.getId()}});
}

void Process::on_call(ProcessId caller, wire::Call::Reader call) {
  if (call.getGivenUp()) return on_given_up_call(caller, call);
  const auto id = call.getId();
  auto reply = [this, caller, id](const Outcome& outcome, std::chrono::nanoseconds run_time) {
    if (auto calls = running_.find(caller); calls != running_.end()) {
      calls->second.erase(id);
      if (calls->second.empty()) running_.erase(calls);
    }
    send_outcome(caller, id, outcome, run_time);
  };
  const auto* function = detail::find_function(call.getFunction().getName(), call.getFunction().getOffset());
  if (!function || identity_.self->node == 0) {
    return reply(
        Failure{.kind = Failure::Kind::Program,
                .message = fmt::format("{} has no function '{}': caller and worker process run different programs",
                                       place_of(*identity_.self), call.getFunction().getLabel().cStr())},
        {});
  }
  if (call.hasGang() && !rank_context_) enter_gang(call.getGang());
  Work work{.kind = static_cast<Work::Kind>(call.getKind()),
            .function = function,
            .caller = caller,
            .arguments = {},
            .stage = std::make_shared<std::atomic<Work::Stage>>(Work::Stage::Waiting),
            .done = reply,
            .number = id};
  for (auto argument : call.getArgs()) {
    work.arguments.push_back(exports_.read(argument));
    if (const auto& stored = work.arguments.back().stored) store_link_.prefetch(stored->place());
  }
  if (DirectId::is(id)) work.place = Work::Place{.caller = caller, .call = id};
  running_[caller][id] = {.stage = work.stage, .label = function->key.label, .reply = reply};
  executor_.push(std::move(work));
}

/// One that has not begun is answered here, whatever runs before it.
void Process::on_cancel(ProcessId caller, std::uint64_t id) {
  const auto calls = running_.find(caller);
  if (calls == running_.end()) return;
  const auto call = calls->second.find(id);
  if (call == calls->second.end()) return;
  auto expected = Work::Stage::Waiting;
  if (!call->second.stage->compare_exchange_strong(expected, Work::Stage::GivenUp)) return;
  const auto running = call->second;
  running.reply(Failure{.kind = Failure::Kind::Cancelled,
                        .message = fmt::format("{} was cancelled before it started", running.label)},
                {});
}

/// Of a call whose caller cannot be told: a result in the store, which is the caller's, would stay until that one ends.
void Process::give_up(const Outcome& outcome) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  if (value && value->stored && !value->stored->is_own()) store_link_.free(value->stored->place());
}

void Process::send_outcome(ProcessId caller, std::uint64_t call, const Outcome& outcome,
                           std::chrono::nanoseconds run_time) {
  const bool sent = peers_.answer_to(caller, bytes_of(outcome), [&](wire::Message::Builder message) {
    auto out = message.initReply();
    out.setId(call);
    out.setRunNs(static_cast<std::uint64_t>(run_time.count()));
    write_outcome(out.initOutcome(), outcome, caller);
  });
  if (!sent) give_up(outcome);
}

void Process::on_fetch(ProcessId caller, wire::Fetch::Reader fetch) {
  auto answer = [this, caller, id = fetch.getId()](const Outcome& outcome) {
    peers_.answer_to(caller, bytes_of(outcome), [&](wire::Message::Builder message) {
      auto out = message.initFetched();
      out.setId(id);
      write_outcome(out.initOutcome(), outcome, caller);
    });
  };
  auto object = exports_.find(fetch.getObject());
  if (!object) {
    return answer(
        Failure{.kind = Failure::Kind::ObjectLost, .message = "the value of this ref was given up by its owner"});
  }
  object->when_ready([object, answer] { answer(object->outcome()); });
}

void Process::on_rendezvous(ProcessId caller, wire::RendezvousRequest::Reader request) {
  auto answer = [this, caller, id = request.getId()](const Outcome& outcome) {
    peers_.answer_to(caller, bytes_of(outcome), [&](wire::Message::Builder message) {
      auto out = message.initRendezvoused();
      out.setId(id);
      if (const auto* failure = std::get_if<Failure>(&outcome)) return out.setFailure(failure->message);
      const auto& bytes = std::get<detail::Payload>(outcome).bytes;
      out.setValue(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    });
  };
  const auto value = request.getValue();
  rendezvous_.ask(request.getGang(),
                  {.action = static_cast<RendezvousRequest::Action>(request.getAction()),
                   .key = request.getKey(),
                   .value = std::string(reinterpret_cast<const char*>(value.begin()), value.size()),
                   .count = request.getCount(),
                   .timeout = std::chrono::milliseconds(request.getTimeoutMs())},
                  answer, Clock::now());
}

// ---- from the head ---------------------------------------------------------------------------------------------

void Process::on_head_message(wire::Message::Reader message) {
  if (head_.is_gone()) return;
  if (message.isTell()) on_tell(message.getTell());
  if (message.isShutdown()) on_cluster_stopped(message.getShutdown());
  if (message.isNodeLost()) on_node_lost(message.getNodeLost());
}

void Process::on_node_message(const transport::ConnectionPtr& from, wire::Message::Reader message) {
  if (!store_link_.on_message(from, message)) on_head_message(message);
}

void Process::on_cluster_stopped(const std::string& why) {
  store_link_.leave();
  head_.disconnect({.kind = Failure::Kind::Disconnected, .message = "the cluster was stopped: " + why});
}

void Process::on_head_lost(const std::string& why) {
  store_link_.leave();
  head_.disconnect(head_gone(why));
}

void Process::on_head_silent(const std::string& why) { end(head_gone(why)); }

void Process::end(const Failure& why) {
  store_link_.leave();
  head_.disconnect(why);
  peers_.end(why);
}

/// Where a host is gone or stands still, no connection to a process on it says so.
void Process::on_node_lost(wire::NodeLost::Reader lost) {
  for (const auto process : lost.getProcesses()) {
    if (peers_.is_known(process)) peers_.died(process, lost_with_node(process, lost.getWhat()));
  }
}

void Process::on_tell(wire::Tell::Reader tell) {
  if (head_.answer(tell)) return;
  switch (tell.which()) {
    case wire::Tell::LEASE:  // granted while it was being withdrawn
      return head_.post([lease = tell.getLease().getLease()](wire::Ask::Builder ask) { ask.setLeaseReturn(lease); });
    case wire::Tell::LEASE_RECALLED:
      return tasks_.recalled(tell.getLeaseRecalled());
    case wire::Tell::LEASE_LOST: {
      const auto lost = tell.getLeaseLost();
      if (const auto process = tasks_.lost(lost.getId())) peers_.died(process, read_death(tell, lost.getFailure()));
      return;
    }
    case wire::Tell::ACTOR_LOST: {
      const auto lost = tell.getActorLost();
      const auto death = read_death(tell, lost.getFailure());
      if (auto process = actors_.lost(lost.getId(), death.how)) peers_.died(process->process, death);
      return;
    }
    case wire::Tell::GANG_BROKEN:
      return gang_broken(tell);
    case wire::Tell::ORPHANS:
      return on_orphans(tell.getOrphans());
    case wire::Tell::STILL_WAITS:
      return log::warn(std::string(tell.getStillWaits()) +
                       " (`troupe status` and Cluster::status_json() say who has what)");
    default:
      return;
  }
}

void Process::on_orphans(wire::Orphans::Reader orphans) {
  if (orphans.getWriter() == identity_.self->process) return;
  std::vector<store::ObjectId> objects;
  for (const auto number : orphans.getNumbers()) objects.push_back({orphans.getWriter(), number});
  orphans_.named(objects, read_address(orphans.getAt()));
}

void Process::watch_node(std::uint32_t node) {
  head_.ask([node](wire::Ask::Builder ask) { ask.setNodeEnd(node); },
            [this, node](wire::Tell::Reader) { store_link_.node_ended(node); }, [](const Failure&) {});
}

void Process::gang_broken(wire::Tell::Reader tell) {
  const auto broken = tell.getGangBroken();
  const auto gang = broken.getGang();
  const auto death = read_death(tell, broken.getFailure());
  if (auto made = gangs_.find(gang); made != gangs_.end() && broken.getRank() < made->second.size()) {
    peers_.died(made->second[broken.getRank()]->process, death);
  }
  const auto how = rank_gone(broken.getRank(), death.how);
  if (rank_context_ && rank_context_->id() == gang) {
    rank_context_->break_with(how);
  } else {
    broken_gangs_.emplace(gang, how);
  }
}

void Process::enter_gang(wire::GangInfo::Reader info) {
  const auto gang = info.getGang();
  std::vector<RankContext::Place> members;
  for (auto member : info.getMembers()) {
    members.push_back({.process = read_address(member.getProcess()),
                       .local_rank = static_cast<int>(member.getLocalRank()),
                       .node_rank = static_cast<int>(member.getNodeRank())});
  }
  if (members.empty() || info.getRank() >= members.size()) return;
  auto rank0 = members.front().process;
  auto ask = [this, gang, rank0](const RendezvousRequest& wanted, std::function<void(Outcome)> done) {
    post([=, this] {
      if (rank0->process == identity_.self->process) return rendezvous_.ask(gang, wanted, done, Clock::now());
      peers_.request(
          rank0,
          [&](wire::Message::Builder message, std::uint64_t id) {
            auto request = message.initRendezvous();
            request.setId(id);
            request.setGang(gang);
            request.setAction(static_cast<std::uint8_t>(wanted.action));
            request.setKey(wanted.key);
            request.setValue(kj::arrayPtr(reinterpret_cast<const kj::byte*>(wanted.value.data()), wanted.value.size()));
            request.setCount(wanted.count);
            request.setTimeoutMs(
                static_cast<std::uint32_t>(std::min<std::int64_t>(wanted.timeout.count(), 0xffff'ffff)));
          },
          [done](Outcome outcome, std::optional<Progress>, std::chrono::nanoseconds) { done(std::move(outcome)); });
    });
  };
  rank_context_ =
      std::make_unique<RankContext>(gang, static_cast<int>(info.getRank()), std::move(members), std::move(ask));
  rank_.store(rank_context_.get(), std::memory_order_release);
  if (auto told = broken_gangs_.find(gang); told != broken_gangs_.end()) rank_context_->break_with(told->second);
}

}  // namespace troupe::runtime
