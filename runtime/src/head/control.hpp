#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <capnp/message.h>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/scheduler/state.hpp>

#include "head/exit_records.hpp"
#include "head/identity.hpp"
#include "head/lost_actors.hpp"
#include "head/routes.hpp"
#include "head/watches.hpp"
#include "ids/ids.hpp"
#include "os/now_and_then.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/stall_detector.hpp"

namespace troupe::head {

/// What the head decides: turns what nodes and processes say into events of the scheduler's State,
/// and the effects into messages. Effects of one turn of the loop leave together, after that turn.
/// Belongs to the head's loop.
class Control {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kTick{200};  ///< how often tick() is to be called

  /// After which, without a heartbeat, one is taken for gone.
  struct Silence {
    std::chrono::milliseconds node;
    std::chrono::milliseconds driver;
  };

  /// `options`: of the scheduler.
  Control(boost::asio::io_context& loop, const Identity& identity, Routes& routes, Silence silence,
          const transport::Secret& token, std::function<void(const std::string&)> log,
          scheduler::Options options)
      : loop_(loop),
        identity_(identity),
        routes_(routes),
        silence_(silence),
        token_(token),
        log_(std::move(log)),
        state_(options) {
    stall_detector_.expect(started_ + kTick);
  }

  // ---- what happens (control.cpp)
  scheduler::NodeId node_joined(wire::NodeJoin::Reader join, transport::ConnectionPtr connection);
  void node_lost(scheduler::NodeId node, scheduler::Incarnation incarnation,
                 const std::string& why);
  /// -> job and the driver's process.
  std::pair<JobId, ProcessId> driver_registered(wire::RegisterDriver::Reader driver,
                                                transport::ConnectionPtr connection);
  /// It has said that it ends; what follows is no fault.
  void driver_leaves(JobId job);
  void driver_gone(JobId job, const std::string& why);
  /// As that node says: of a process of another node its word counts for nothing.
  void process_ready(scheduler::NodeId node, wire::ProcessReady::Reader ready);
  void process_exited(scheduler::NodeId node, wire::ProcessExited::Reader exited);
  /// Whatever it said.
  void driver_spoke(JobId job);
  void node_stood_still(scheduler::NodeId node, std::uint32_t milliseconds);
  /// The node is told once that process has ended; at once, where it has.
  void owner_watched(scheduler::NodeId node, ProcessId owner);
  /// Likewise, of another node.
  void node_watched(scheduler::NodeId node, scheduler::NodeId watched);
  /// A process of that node has ended, and left what it wrote for a process elsewhere, which is
  /// told.
  void orphaned(scheduler::NodeId node, wire::Orphans::Reader orphans);
  void tick();

  // ---- what is asked (asks.cpp)
  void asked(ProcessId asker, wire::HeadRequest::Reader ask);

  /// Carries out the scheduler's effects that wait, so that the next request is answered after them:
  /// between an event and the end of its turn of the loop the head knows that an actor is gone, and
  /// not yet how.
  void carry_out_effects();
  /// What `troupe status --json` prints (status.cpp).
  nlohmann::json status() const;
  /// Of each node number, name and what it has: the part of status() that drivers ask for often.
  nlohmann::json nodes_and_totals() const;
  /// How many entries the head's tables have, by name: each goes with what it is about, but for how
  /// processes and actors ended, which is forgotten by number (see ExitRecords).
  nlohmann::json table_sizes() const;
  /// Where an actor is, or was; none: it is not known, or has no process yet.
  std::optional<ProcessId> process_of_actor(scheduler::ActorId actor) const;
  /// Throws std::invalid_argument where actors of several jobs have that name.
  std::optional<ProcessId> process_of_actor(std::string_view name) const;
  /// Of a detached actor that was lost: it is in the status no more. False: there is none.
  bool forget_lost_actor(std::string_view name) { return lost_actors_.forget(name); }
  /// The programs and the detached actors that end with the cluster, but for actors that have done
  /// their work: how many there are of each, and names of some.
  nlohmann::json ends_with_cluster() const;
  std::size_t drivers() const { return jobs_.size(); }
  std::size_t nodes() const { return routes_.nodes().size(); }

 private:
  struct Job {
    ProcessId driver{};
    std::string name;
    std::uint32_t pid = 0;
    bool leaves = false;  // in order
  };
  struct Asked {  // who waits for the answer to a request
    ProcessId asker{};
    HeadRequestId id{};
  };
  struct Search {
    Asked asked;
    JobId job{};
    scheduler::ActorId actor{};
    std::string name;
    std::string type;
    bool now = false;  // it is answered at once, whatever there is
  };
  /// The job of a detached actor, which has no driver: the actor is there by the request of a
  /// process that does not exist.
  ///
  ///   ask_actor --> [made for its creator] --constructed--> [on its own]
  ///        its actor is gone, or its creator before that --> ended at the next tick
  struct DetachedJob {
    scheduler::ActorId actor{};
    ProcessId creator{};      // none: the actor is constructed
    ProcessId in_its_name{};  // that asks for it
    std::string name;
    std::string type;
    scheduler::NodeId node{};  // that it was constructed on, and its name
    std::string node_name = {};
    bool is_killed = false;  // by somebody's handle
    std::string end = {};    // as the actor has told it; empty: it has not ended what it does
  };
  /// For a detached actor whose name another one has that is being constructed. Once that is known
  /// to be constructed or to have failed, it is asked for as if the request came then.
  struct NameWait {
    Asked asked;
    JobId behind{};
    std::shared_ptr<capnp::MallocMessageBuilder> ask;
  };
  struct FateAsked {
    Asked asked;
    Clock::time_point until;
  };

  // control.cpp
  std::string why_too_many_cpus(wire::NodeJoin::Reader join) const;
  std::string why_name_is_doubtful(const std::string& name) const;
  void apply(const scheduler::Event& event);
  void settle_fate(ProcessId process, ExitRecords::End end);
  void forget_asks_of(ProcessId process);
  void answer_overdue_fates();
  bool has_spoken_since(ProcessId process, Clock::time_point time);
  void tell_owner_ended(scheduler::NodeId node, ProcessId owner);
  void tell_node_ended(scheduler::NodeId node, scheduler::NodeId ended);

  // silence.cpp
  void forgive_own_silence();
  void look_for_silent_nodes();
  void look_for_silent_drivers();
  bool has_driver_spoken_since(JobId job, Clock::time_point time) const;
  static bool beats(const Routes::Job& job);

  // asks.cpp
  scheduler::RequestId open_request(ProcessId asker, HeadRequestId id);
  void kill_actor(ProcessId by, scheduler::ActorId actor);
  void release_gang(ProcessId by, scheduler::GangId gang);
  void withdraw(ProcessId asker, HeadRequestId id);
  void ask_actor(ProcessId asker, HeadRequestId id, wire::ActorAsk::Reader ask);
  void ask_gang(ProcessId asker, HeadRequestId id, wire::GangAsk::Reader ask);
  void find_actor(const Search& search);
  /// False: it may still come.
  bool answer_search(const Search& search);
  void ask_store(const Asked& asked, const std::string& machine);
  void ask_fate(const Asked& asked, ProcessId process);
  void ask_node_end(const Asked& asked, scheduler::NodeId node);
  void answer_done(const Asked& asked);
  void refuse(const Asked& asked, Failure::Kind kind, const std::string& why);
  std::string about_holder(ProcessId asker, scheduler::ActorId holder) const;
  void refuse_for(const Asked& asked, ProcessId process);

  // status.cpp
  nlohmann::json status_of(const scheduler::JobView& job) const;
  nlohmann::json pending_rows() const;
  nlohmann::json lost_actor_rows() const;

  // detached.cpp
  /// -> its job, and in whose name it is to be asked for.
  std::string why_not_detached(ProcessId creator, wire::ActorAsk::Reader ask) const;
  void values_held(ProcessId process, bool any);
  void keep_creator(ProcessId creator);
  std::pair<JobId, ProcessId> start_detached(ProcessId creator, wire::ActorAsk::Reader ask);
  void detached_made(ProcessId creator, scheduler::ActorId actor);
  void end_detached();
  static double now_in_seconds();  // since 1970
  void note_end(ProcessId process, std::string_view end);
  void note_if_lost(scheduler::ActorId actor, const std::string& how);
  LostActors::Lost ended_now(const DetachedJob& job, const std::string& how) const;
  std::string why_not_there(JobId job, const std::string& name) const;
  bool waits_for_name(const Asked& asked, wire::ActorAsk::Reader ask);
  bool is_killed_before_its_name(ProcessId by, scheduler::ActorId actor);
  void name_settled(JobId job);
  ProcessId who_may_kill(ProcessId by, scheduler::ActorId actor) const;
  void write_grant(wire::ActorGrant::Builder grant, const scheduler::ActorView& actor,
                   const Routes::Process& process, JobId asker) const;

  // effects.cpp
  void carry_out(const scheduler::StartProcess& effect);
  void carry_out(const scheduler::StopProcess& effect);
  void carry_out(const scheduler::LeaseGranted& effect);
  void carry_out(const scheduler::ActorPlaced& effect);
  void carry_out(const scheduler::GangPlaced& effect);
  void carry_out(const scheduler::Refused& effect);
  void carry_out(const scheduler::LeaseRecalled& effect);
  void carry_out(const scheduler::LeaseLost& effect);
  void carry_out(const scheduler::ActorLost& effect);
  void carry_out(const scheduler::GangBroken& effect);
  void carry_out(const scheduler::ProcessResumed& effect);
  void carry_out(const scheduler::StillWaits& effect);
  /// How `process` ended, as far as is known; else `cause`.
  runtime::Death death_or(ProcessId process, ProcessId told, const std::string& cause) const;
  std::optional<Asked> close_request(scheduler::RequestId request);

  boost::asio::io_context& loop_;
  const Identity& identity_;
  Routes& routes_;
  const Silence silence_;
  const transport::Secret token_;
  std::function<void(const std::string&)> log_;
  scheduler::State state_;
  const Clock::time_point started_ = Clock::now();
  transport::StallDetector stall_detector_{2 * kTick};

  std::vector<scheduler::Effect> effects_;
  os::NowAndThen checks_;
  bool flushing_ = false;
  JobId last_job_{};
  scheduler::NodeId last_node_{};
  scheduler::RequestId last_request_{};
  std::unordered_map<scheduler::RequestId, Asked> requests_;
  std::map<std::pair<ProcessId, HeadRequestId>, scheduler::RequestId> request_of_;
  std::map<JobId, Job> jobs_;
  std::map<JobId, DetachedJob> detached_;
  std::set<ProcessId> holders_;  // of values that others have refs of
  std::vector<Search> searches_;
  std::vector<NameWait> name_waits_;                       // in their order
  std::unordered_map<ProcessId, HeadRequestId> resuming_;  // the ask that `resumed` answers
  ExitRecords exit_records_;
  LostActors lost_actors_;    // nobody killed them
  LostActors killed_actors_;  // by a handle: for who looks for them
  Watches<ProcessId> owner_watches_;
  Watches<NodeId> node_watches_;
  std::unordered_map<scheduler::NodeId, std::vector<Asked>> node_ends_asked_;
  std::unordered_map<ProcessId, std::vector<FateAsked>> fates_asked_;
};

}  // namespace troupe::head
