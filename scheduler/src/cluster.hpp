#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/events.hpp>
#include <troupe/scheduler/options.hpp>

#include "id_format.hpp"
#include "tables/departed.hpp"
#include "tables/model.hpp"
#include "tables/node_table.hpp"
#include "tables/queue.hpp"
#include "tables/records.hpp"
#include "values/actor_name.hpp"
#include "values/cpu_loans.hpp"
#include "values/dominant_shares.hpp"
#include "values/lease_ages.hpp"
#include "values/lease_bounds.hpp"
#include "values/light_processes.hpp"
#include "values/reservations.hpp"
#include "values/shortlist.hpp"
#include "values/spares.hpp"

namespace troupe::scheduler {

/// The wiring of the state machine: an event comes in, the records and the types that keep what must
/// hold of one matter (Spares, CpuLoans, Reservations, ...) answer, and effects go out. One source
/// per group of functions.
///
/// An event changes records and emits effects; what a stopped or dead process asked for goes on a
/// list (`doomed_`) and ended after the event, however long the chain of creators is. Then
/// processes that wait for their CPU are served, then the requests that wait, then leases are
/// recalled for those that still do.
class Cluster {
 public:
  explicit Cluster(Options options)
      : options_{options},
        departed_{options.departed_nodes},
        shares_{options.share_window},
        reservations_{options},
        bounds_{options.lease_processes_per_cpu},
        light_{options.light_processes_per_cpu} {}
  Cluster(const Cluster&) = delete;

  /// Appends to `effects`.
  void apply(const Event& event, TimePoint now, std::vector<Effect>& effects);
  ProcessId new_process_id() { return ++last_process_; }

  // snapshot.cpp, reasons.cpp, invariants.cpp
  std::vector<PendingView> pending() const;
  std::vector<NodeView> nodes() const;
  std::vector<ActorView> actors() const;
  std::vector<GangView> gangs() const;
  std::vector<JobView> jobs() const;
  std::vector<ProcessView> processes() const;
  std::optional<ProcessView> process(ProcessId id) const;
  std::optional<ActorView> actor(ActorId id) const;
  std::optional<ActorView> actor_named(JobId job, std::string_view name) const;
  std::optional<GangView> gang(GangId id) const;
  std::optional<std::string> broken_invariant() const;

 private:
  // nodes.cpp, jobs.cpp
  void on(const NodeJoined& event);
  void on(const NodeLost& event);
  void on(const JobStarted& event);
  void on(const JobEnded& event);
  void lose_node(Node& node, const std::string& why);
  void end_job(Job& job, const std::string& why);
  void forget_job_if_over(JobId job);

  // asks.cpp
  void on(const LeaseAsked& event);
  void on(const ActorAsked& event);
  void on(const GangAsked& event);
  void on(const RequestWithdrawn& event);
  void on(const LeaseReturned& event);
  void on(const ActorReleased& event);
  void on(const GangReleased& event);
  struct Objection {
    Refused::Kind kind;
    std::string reason;
  };
  /// Whether the nodes could hold it with nothing else on them; if not, until when they may come to
  /// do so.
  struct Prospect {
    bool possible = false;
    TimePoint until = TimePoint::min();
  };
  /// `requester`: nullptr if there is no such process.
  std::optional<Objection> objection(JobId job, ProcessId id, const Process* requester,
                                     const ShapeView& shape, const Prospect& outlook) const;
  /// Where it is accepted, its requester; else it was refused, or is there already.
  template <class Asked>
  Process* accept(const Asked& event, const ShapeView& shape, SubjectId subject);
  void refuse(Request& request, Refused::Kind kind, std::string reason, ProcessId failed = {});
  /// Without an answer: takes back what it holds, and the actor or gang that it was to become.
  void drop(RequestId request);
  void drop(Request& request);
  void forget(Request& request);

  // prospects.cpp
  bool possible(const ShapeView& shape) const;
  template <class Counts>
  void count_present(const ShapeView& shape, Counts& counts) const;
  const DepartedNode* missed_node(const ShapeView& shape) const;
  Prospect prospect(const ShapeView& shape) const;
  void judge_all_shapes();
  std::string impossible_because(const ShapeView& shape) const;
  std::string reason_of_missing(const ShapeView& shape) const;
  std::string refusal_after_patience(const ShapeView& shape) const;

  // processes.cpp
  void on(const ProcessReady& event);
  void on(const ProcessExited& event);
  static bool is_of(const Process& process, NodeId node, Incarnation incarnation);
  void on(const ValuesHeld& event);
  void process_gone(Process& process, const std::string& cause, bool with_node);
  void lose_role(Process& process, const std::string& cause, bool with_node);
  void start_failed(Request& request, const Process& process, const std::string& cause,
                    bool with_node);
  void stop(Process& process, std::string why);
  /// Takes the use from it and what it holds: kept for the job's next request if it can be, else
  /// stopped.
  void put_aside(Process& process, std::string_view why);
  void thin_out(const Node& node);
  void clear_role(Process& process);
  void doom(const Process& process, std::string cause);
  void end_doomed();
  void end_dependents(Process& process, const std::string& cause);
  void end_lease(Lease& lease, const std::string& why);
  void end_actor(ActorId actor, const std::string& why);
  void end_gang(GangId gang, const std::string& why);
  void erase_lease(Lease& lease);
  void erase_actor(ActorId actor);
  void erase_gang(GangId gang);

  // blocking.cpp
  void on(const ProcessBlocked& event);
  void on(const ProcessUnblocked& event);
  void on(const ResourcesReturned& event);
  void serve_waiting_for_cpu(Node& node);
  void end_wait(Process& process);
  void recall_for_cpu(Node& node);
  void run_in_debt();

  // placing.cpp
  /// One pass over who waits.
  void place_waiting();
  bool may_place() const;
  bool try_place(Shape& shape);
  bool try_place_gang(Shape& shape);
  Node* home_for(const Shape& shape);
  Request& next_for(const Node& node, Shape& shape);
  /// Of the nodes that were touched, where the shape is known to fit no other; else of all. Until
  /// the next list is made.
  std::span<const Candidate> shortlist(const Shape& shape);
  void leave_queue(Request& request);
  Share take(Node& node, const Resources& need);
  void commit(Request& request, Node& node);
  void commit(Request& request, const std::vector<NodeId>& nodes);
  void lease(Request& request, Process& process);
  std::vector<Member> take_for(Request& request, const std::vector<NodeId>& nodes);
  /// Moves `share`, of which `visible` may be a part, to the process.
  Process& process_for(const Request& request, Node& node, Share& share,
                       const std::vector<GpuIndex>& visible);
  Process& new_process(Job& job, Node& node, const std::vector<GpuIndex>& visible,
                       std::uint32_t threads);
  void became_ready(Process& process);
  void grant(Lease& lease);
  void place(Actor& actor);
  void place(Gang& gang);
  void back_to_waiting(Request& request);

  // sharing.cpp
  void measure_jobs();
  void review_shares();
  void review_turns();
  /// Whether some job is to give way to the request.
  bool is_owed(const Request& request) const;
  /// What the process holds is used by its job, or is not any more.
  void count_use(Process& process, bool more);
  void set_cpu(Process& process, Amount amount);

  // timeouts.cpp, reserving.cpp, recalling.cpp
  void on(const Tick&) {
    review_shares();
    review_turns();
  }
  void pass_time(bool is_tick);
  void stop_idle();
  void refuse_unmet();
  void refuse_bounded();
  bool only_bounded(const ShapeKey& shape) const;
  void review_reservations(bool is_tick);
  void reserve(Request& request);
  Capacity room_in(const Node& node, const Request& request, bool around_actors) const;
  std::optional<std::vector<NodeId>> plan(const Request& request, bool around_actors) const;
  void drain(const Request& request);
  bool may_be_drained(const Lease& lease, const Request& request) const;
  void hold_place(Request& request);
  bool has_waited_long(const Request& request) const;
  void recall_overdue();
  void tell_who_waits();
  static std::string kept_by_actors(const Job& job);
  static std::string kept_until_ended(const Job& job);
  bool lacks_cpu(const Request& request) const;
  bool halves_itself(const Job& job) const;
  std::string hint(const Job& job) const;
  bool is_news(const Request& request) const;
  bool competes(const Shape& shape, const Lease& lease) const;
  void recall_for_those_behind();
  void recall_for(Shape& shape, const Foremost& foremost, Resources& coming);
  void recall(Lease& lease);

  std::string what(const Request& request) const;
  std::string reason(const Request& request) const;
  std::string reason_of_starting(const Request& request) const;
  std::string reason_of_reservation(const Request& request) const;
  std::string reason_of_waiting(const Request& request) const;
  std::string node_text(NodeId node) const;
  ActorView view(const Actor& actor) const;
  static GangView view(const Gang& gang);
  ProcessView view(const Process& process) const;

  std::optional<std::string> broken_value() const;
  std::optional<std::string> broken(const Process& process) const;
  std::optional<std::string> broken(const Gang& gang) const;
  std::optional<std::string> broken(const Shape& shape) const;
  std::optional<std::string> broken_order(const Shape& shape) const;
  std::optional<std::string> broken_leases() const;
  std::optional<std::string> broken_holders() const;
  std::optional<std::string> broken_requests() const;
  std::optional<std::string> forgotten_request() const;

  template <class Happens>
  void emit(Happens&& effect) {
    effects_->emplace_back(std::forward<Happens>(effect));
  }
  Process* find_process(ProcessId id) const { return processes_.find(id); }

  Options options_;
  TimePoint now_{};
  TimePoint time_passed_at_{};  // when pass_time ran last
  std::uint64_t last_sequence_ = 0;
  ProcessId last_process_{};
  LeaseId last_lease_{};

  NodeTable nodes_;
  Departed departed_;
  Queue queue_;
  Records<RequestId, Request> requests_;
  Records<ProcessId, Process> processes_;
  Records<LeaseId, Lease> leases_;
  std::map<ActorId, Actor> actors_;
  std::map<ActorName, ActorId> names_;
  std::map<GangId, Gang> gangs_;
  std::map<JobId, Job> jobs_;

  DominantShares shares_;
  CpuLoans loans_;
  Spares spares_;
  Reservations reservations_;
  LeaseAges ages_;
  LeaseBounds bounds_;
  LightProcesses light_;
  std::vector<std::pair<ProcessId, std::string>> doomed_;
  // In this pass: nodes that can take more than in the last one.
  std::vector<Node*> looked_at_;
  Shortlist shortlist_{nodes_, bounds_, light_};
  std::vector<Effect>* effects_ = nullptr;  // of the event that is applied
};

}  // namespace troupe::scheduler
