#include "session/process.hpp"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "calls/death_codec.hpp"
#include "ids/session.hpp"
#include "log/log.hpp"
#include "objects/forked_copy.hpp"
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
      borrow.setProcess(here->identity().self->process.value());
      borrow.setDelta(-1);
    });
  });
}

Failure head_gone(const std::string& why, bool is_private) {
  const auto* remedy =
      is_private
          ? "the process of this program's private cluster has ended, killed by somebody or "
            "for want of memory, which the kernel's log (`dmesg`) says: start this program again"
          : "its head has ended or cannot be reached: see what it said last, start it again, "
            "then this program";
  return {.kind = Failure::Kind::Disconnected,
          .message = fmt::format("the cluster is gone: {}; {}", why, remedy)};
}

std::string place_of(const Address& self) {
  const auto pid = " (pid " + std::to_string(getpid()) + ")";
  if (!self.node) return "driver" + pid;
  return "process " + to_string(self.process) + pid + " on node " + to_string(self.node);
}

}  // namespace

Process& Process::current() { return static_cast<Process&>(ProcessContext::current()); }

Process::Process(boost::asio::io_context& loop, Identity identity, transport::ConnectionPtr head,
                 AcceptPolicy accept_policy, std::function<void(StoreLink::Connected)> to_store)
    : loop_(loop),
      identity_(std::move(identity)),
      accept_policy_(std::move(accept_policy)),
      acceptor_(loop, "", {}, nullptr),
      node_(identity_.self->node ? head : nullptr),
      store_link_({.loop = loop_,
                   .self = identity_.self,
                   .connect = std::move(to_store),
                   .orphaned = [this](const auto& objects) { orphans_.named(objects, nullptr); },
                   .watch_node = [this](NodeId node) { watch_node(node); },
                   .to_nodes = {.self = {.role = wire::Role::PROCESS,
                                         .cluster = identity_.cluster,
                                         .job = identity_.job,
                                         .process = identity_.self->process,
                                         .subject = {}},
                                .key = identity_.job_key,
                                .nobody_there = "the node that has it has ended"}}),
      held_values_(loop_, head_),
      exports_({.self = identity_.self,
                .send_borrow =
                    [this](const AddressPtr& owner, std::uint64_t object, ProcessId holder,
                           std::int64_t delta) {
                      peers_.send(owner, [&](wire::Message::Builder message, std::uint64_t) {
                        auto borrow = message.initBorrow();
                        borrow.setObject(object);
                        borrow.setProcess(holder.value());
                        borrow.setDelta(delta);
                      });
                    },
                .release = &release_borrowed,
                .held =
                    [this](bool any) {
                      // A driver is not stopped for idleness.
                      if (identity_.self->node) held_values_.changed(any);
                    },
                .has_ended = [this](ProcessId process) { return peers_.has_died(process); }}),
      orphans_({.may_answer = [this](ProcessId writer) { return peers_.may_answer(writer); },
                .is_known = [this](store::ObjectId object) { return exports_.has_stored(object); },
                .free = [this](const store::Wanted& place) { store_link_.free(place); }}),
      executor_(loop_, place_of(*identity_.self),
                [this](ProcessId caller, std::function<void()> done) {
                  peers_.write_out(caller, std::move(done));
                }),
      peers_(
          {.loop = loop_,
           .self = identity_.self,
           .job = identity_.job,
           .job_key = identity_.job_key,
           .cluster = identity_.cluster,
           .head = head_,
           .exports = exports_,
           .executor = executor_,
           .on_request = [this](ProcessId caller,
                                wire::Message::Reader message) { on_request(caller, message); },
           .send_outcome =
               [this](ProcessId caller, std::uint64_t call, const Outcome& outcome,
                      std::chrono::nanoseconds run_time, ReplyPlace kept) {
                 call_server_.send_outcome(caller, call, outcome, run_time, kept);
               },
           .on_lost =
               [this](ProcessId process) {
                 orphans_.lost(process);
                 call_server_.forget(process);
               },
           .on_channel = [this](const OutChannelPtr& channel) { tasks_.channel_opened(channel); }}),
      call_server_(peers_, exports_, executor_, store_link_, place_of(*identity_.self),
                   static_cast<bool>(identity_.self->node),
                   {.on_gang = [this](wire::GangInfo::Reader gang) { enter_gang(gang); }}),
      resolver_(peers_),
      calls_(peers_, exports_, identity_.self),
      tasks_(loop_, head_, calls_, resolver_),
      actors_(loop_, head_, calls_, resolver_),
      gangs_(loop_, peers_, identity_.self->process) {
  hang_up_in_copies(head->descriptor());
  head_.connect(std::move(head));
  make_current(this);
  begin_session();
}

Process::~Process() {
  end_session();
  make_current(nullptr);
  hang_up_in_copies(-1);
}

void Process::enter_gang(wire::GangInfo::Reader gang) {
  if (gangs_.context() != nullptr) return;
  gangs_.enter(gang);
  if (const auto* rank = gangs_.context()) {
    executor_.set_place(
        fmt::format("rank {} of {}, {}", rank->rank(), rank->size(), place_of(*identity_.self)));
  }
}

void Process::give_cpu_back() {
  if (Executor::is_this_thread()) executor_.on_wait_begun();
  post([this] { perform(cpu_lending_.begin_wait()); });
}

detail::ObjectPtr Process::take_cpu_again() {
  auto resumed = detail::Object::pending(0);
  post([this, resumed] {
    const auto then = cpu_lending_.end_wait();
    if (then == CpuLending::Then::GoOn) return resumed->complete(detail::Payload{});
    resuming_.push_back(resumed);
    perform(then);
  });
  return resumed;
}

void Process::has_cpu_again() {
  if (Executor::is_this_thread()) executor_.on_wait_ended();
}

void Process::perform(CpuLending::Then then) {
  using Then = CpuLending::Then;
  if (then == Then::SayBlocked) {
    head_.notify([](wire::HeadRequest::Builder ask) { ask.setBlocked(); });
  } else if (then == Then::SayUnblocked) {
    head_.request([](wire::HeadRequest::Builder ask) { ask.setUnblocked(); },
                  [this](wire::HeadNotice::Reader) { on_resumed(detail::Payload{}); },
                  [this](const Failure& failure) { on_resumed(failure); });
  }
}

void Process::on_resumed(const Outcome& outcome) {
  for (const auto& resumed : std::exchange(resuming_, {})) resumed->complete(outcome);
  perform(cpu_lending_.resumed());
}

void Process::return_resources() {
  post(
      [this] { head_.notify([](wire::HeadRequest::Builder ask) { ask.setResourcesReturned(); }); });
}

void Process::tell_end(std::string end) {
  post([this, end = std::move(end)] {
    head_.notify([&](wire::HeadRequest::Builder ask) { ask.setEnded(end); });
  });
}

void Process::accept(transport::Socket socket) {
  transport::ServerOptions options;
  options.cluster = identity_.cluster;
  options.timeout = kPeerHandshake;
  options.refuse = [this](const transport::Caller& caller) -> std::string {
    if (caller.role != wire::Role::PROCESS) return accept_policy_.refuse(caller);
    if (caller.subject != identity_.self->process) {
      return fmt::format("this is process {}, not {}: the one you look for has ended",
                         identity_.self->process, caller.subject);
    }
    return caller.job == identity_.job
               ? ""
               : fmt::format("this process serves job {}, not {}", identity_.job, caller.job);
  };
  options.key = [this](const transport::Caller& caller) {
    return caller.role == wire::Role::PROCESS ? identity_.job_key : accept_policy_.key;
  };
  acceptor_.accept(std::move(socket), std::move(options),
                   [this](transport::ConnectionPtr connection, const transport::Accepted& who) {
                     if (who.caller.role == wire::Role::PROCESS)
                       return peers_.adopt(connection, who.caller.process);
                     // Held by its own handlers until the stranger closes it.
                     connection->hand_over(
                         {},
                         [this, connection](wire::Message::Reader message) {
                           accept_policy_.serve(connection, message);
                         },
                         [](const std::string&) {});
                   });
}

// ---- from other processes -----------------------------------------------------------------------

void Process::on_request(ProcessId caller, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::CALL:
      return call_server_.on_call(caller, message.getCall());
    case wire::Message::FETCH:
      return call_server_.on_fetch(caller, message.getFetch());
    case wire::Message::BORROW:
      return exports_.borrow(message.getBorrow().getObject(),
                             ProcessId(message.getBorrow().getProcess()),
                             message.getBorrow().getDelta());
    case wire::Message::RENDEZVOUS:
      return gangs_.on_rendezvous(caller, message.getRendezvous());
    case wire::Message::CANCEL:
      return call_server_.on_cancel(caller, message.getCancel());
    default:
      return;  // of a later protocol; the handshake keeps those away
  }
}

// ---- from the head ------------------------------------------------------------------------------

void Process::on_head_message(wire::Message::Reader message) {
  if (head_.is_gone()) return;
  if (message.isHeadNotice()) on_tell(message.getHeadNotice());
  if (message.isShutdown()) on_cluster_stopped(message.getShutdown());
  if (message.isNodeLost()) on_node_lost(message.getNodeLost());
}

void Process::on_node_message(const transport::ConnectionPtr& from, wire::Message::Reader message) {
  if (message.isAdminReply()) {
    if (node_asked_.empty()) return;
    const auto answered = std::move(node_asked_.front());
    node_asked_.pop_front();
    return answered(message.getAdminReply());
  }
  if (!store_link_.on_message(from, message)) on_head_message(message);
}

void Process::ask_node(const std::string& request,
                       std::function<void(const std::string&)> answered) {
  if (!node_) return;
  node_asked_.push_back(std::move(answered));
  transport::Outgoing message;
  message.root().setAdminRequest(request);
  node_->send(message);
}

/// Whoever waits for the end of the cluster hears of it before what is under way fails for it.
void Process::lose_head(const Failure& why) {
  store_link_.leave();
  cluster_end_->complete(why);
  head_.disconnect(why);
}

void Process::on_cluster_stopped(const std::string& why) {
  lose_head({.kind = Failure::Kind::Disconnected, .message = "the cluster was stopped: " + why});
}

void Process::on_head_lost(const std::string& why) {
  lose_head(head_gone(why, identity_.is_private));
}

void Process::on_head_silent(const std::string& why) { end(head_gone(why, identity_.is_private)); }

void Process::end(const Failure& why) {
  lose_head(why);
  peers_.end(why);
  actors_.end(why);
}

/// Where a host is gone or stands still, no connection to a process on it says so.
void Process::on_node_lost(wire::NodeLost::Reader lost) {
  for (const auto number : lost.getProcesses()) {
    const ProcessId process{number};
    if (peers_.is_known(process)) peers_.died(process, lost_with_node(process, lost.getWhat()));
  }
  store_link_.node_ended(NodeId(lost.getNode()));
  store_link_.node_lost(NodeId(lost.getNode()),
                        "the object store of this machine " + std::string(lost.getWhat().cStr()));
}

void Process::on_tell(wire::HeadNotice::Reader tell) {
  if (head_.answer(tell)) return;
  switch (tell.which()) {
    case wire::HeadNotice::LEASE:  // granted while it was being withdrawn
      return head_.notify([lease = tell.getLease().getLease()](wire::HeadRequest::Builder ask) {
        ask.setLeaseReturn(lease);
      });
    case wire::HeadNotice::LEASE_RECALLED:
      return tasks_.recalled(LeaseId(tell.getLeaseRecalled()));
    case wire::HeadNotice::LEASE_LOST: {
      const auto lost = tell.getLeaseLost();
      if (const auto process = tasks_.lost(LeaseId(lost.getId())))
        peers_.died(process, read_death(tell, lost.getFailure()));
      return;
    }
    case wire::HeadNotice::ACTOR_LOST: {
      const auto lost = tell.getActorLost();
      const auto death = read_death(tell, lost.getFailure());
      if (auto process = actors_.lost(ActorId(lost.getId()), death.how))
        peers_.died(process->process, death);
      return;
    }
    case wire::HeadNotice::GANG_BROKEN: {
      const auto broken = tell.getGangBroken();
      return gangs_.on_broken(GangId(broken.getGang()), broken.getRank(),
                              read_death(tell, broken.getFailure()));
    }
    case wire::HeadNotice::ORPHANS:
      return on_orphans(tell.getOrphans());
    case wire::HeadNotice::STILL_WAITS:
      return log::warn(std::string(tell.getStillWaits()) +
                       " (`troupe status` and Cluster::status_json() say who has what)");
    default:
      return;
  }
}

void Process::warn_if_cluster_is_private() {
  if (!identity_.is_private || has_warned_of_detached_.exchange(true)) return;
  log::warn(
      "a detached actor of this program ends with the program, because its cluster is private: for "
      "the actor to stay, start `troupe head` and give the program --address HOST:PORT");
}

/// In a private cluster they end with the program, and a worker process ends when its node says so.
void Process::note_detached(const std::string& name, const detail::ActorPtr& actor) {
  if (node_ == nullptr && !identity_.is_private) detached_spawns_.add(name, actor);
}

void Process::finish_detached(const std::function<void(const std::string&)>& say) {
  detached_spawns_.finish(*this, *cluster_end_, say);
}

void Process::on_orphans(wire::Orphans::Reader orphans) {
  const ProcessId writer{orphans.getWriter()};
  if (writer == identity_.self->process) return;
  std::vector<store::ObjectId> objects;
  for (const auto number : orphans.getNumbers()) objects.push_back({writer, number});
  orphans_.named(objects, read_address(orphans.getAt()));
}

void Process::watch_node(NodeId node) {
  head_.request([node](wire::HeadRequest::Builder ask) { ask.setNodeEnd(node.value()); },
                [this, node](wire::HeadNotice::Reader) { store_link_.node_ended(node); },
                [](const Failure&) {});
}

}  // namespace troupe::runtime
