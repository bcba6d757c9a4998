#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/scheduler/state.hpp>

#include "../support/id_literals.hpp"

/// A cluster around the state machine: it starts and stops what it is told to, in virtual time, and
/// checks the invariants after every event.
namespace troupe::scheduler::test {

using namespace std::chrono_literals;

inline Need cpus(double count) { return {{{"cpu", count}}, {}, false}; }
inline Need gpus(double count) { return {{{"cpu", 1}, {"gpu", count}}, {}, false}; }

class World {
 public:
  explicit World(Options options = {}) : state{options} {}

  State state;
  TimePoint now{};
  std::vector<Effect> last;  ///< of the last event given by a test
  std::map<ProcessId, StartProcess> starting;
  std::set<ProcessId> running;
  std::map<ProcessId, StopProcess> stopping;
  std::map<LeaseId, LeaseGranted> leases;
  std::set<LeaseId> recalled;
  std::map<ActorId, ActorPlaced> actors;
  std::map<GangId, GangPlaced> gangs;
  std::set<ProcessId> resumed;
  /// All that were: on which node, and in which of its incarnations.
  std::map<ProcessId, StartProcess> started;
  /// Every effect so far, a line each, where each event is checked.
  std::string told;
  std::size_t check_every = 1;  ///< events between two looks at the invariants

  /// Applies one event, and nothing else.
  const std::vector<Effect>& apply(const Event& event) {
    last = state.apply(event, now);
    if (const auto* returned = std::get_if<LeaseReturned>(&event)) note(*returned);
    for (const auto& effect : last) {
      if (check_every == 1) told += to_string(effect) + '\n';
      std::visit([this](const auto& e) { note(e); }, effect);
    }
    if (++events_ % check_every != 0) return last;
    if (const auto wrong = state.broken_invariant()) FAIL(to_string(event) << ": " << *wrong);
    return last;
  }

  /// Worker processes become ready and exit as they were told to, until nothing is left to do.
  /// Keeps `last` growing.
  void settle() {
    auto seen = last;
    while (!starting.empty() || !stopping.empty()) {
      if (!stopping.empty()) {
        exit(stopping.begin()->first, "stopped");
      } else {
        ready(starting.begin()->first);
      }
      seen.insert(seen.end(), last.begin(), last.end());
    }
    last = seen;
  }
  void step(const Event& event) {
    apply(event);
    settle();
  }
  void ready(ProcessId process) {
    starting.erase(process);
    running.insert(process);
    const auto home = home_of(process);
    apply(ProcessReady{process, home.node, home.incarnation});
  }
  void exit(ProcessId process, std::string cause) {
    starting.erase(process);
    running.erase(process);
    stopping.erase(process);
    const auto home = home_of(process);
    apply(ProcessExited{process, home.node, home.incarnation, std::move(cause)});
  }
  void wait(Duration time) {
    now += time;
    step(Tick{});
  }

  NodeId join(const std::string& name, Resources total, std::uint32_t gpus = 0,
              Labels labels = {}) {
    const auto node = ++last_node_;
    step(NodeJoined{node, 1_life, name, std::move(total), gpus, std::move(labels)});
    return node;
  }
  /// -> its driver
  ProcessId start_job(JobId job) {
    const auto driver = state.new_process_id();
    step(JobStarted{job, driver});
    return driver;
  }
  RequestId ask_lease(ProcessId requester, const Need& need, JobId job = 1_job) {
    step(LeaseAsked{++last_request_, job, requester, need});
    return last_request_;
  }
  RequestId ask_actor(ActorId actor, ProcessId requester, const Need& need, std::string name = {},
                      JobId job = 1_job) {
    step(ActorAsked{++last_request_, actor, job, requester, need, std::move(name), {}});
    return last_request_;
  }
  RequestId ask_gang(GangId gang, ProcessId requester, std::uint32_t size, const Need& each,
                     Strategy strategy = Strategy::Pack, JobId job = 1_job) {
    step(GangAsked{++last_request_, gang, job, requester, size, each, strategy});
    return last_request_;
  }
  /// Where it was started; of node 0 where it was not, as a driver is.
  StartProcess home_of(ProcessId process) const {
    const auto found = started.find(process);
    return found == started.end() ? StartProcess{} : found->second;
  }
  RequestId next_request() { return ++last_request_; }
  void give_back(LeaseId lease) { step(LeaseReturned{lease, leases.at(lease).requester}); }
  /// No effect where it has gone with another one.
  void release_actor(ActorId actor) {
    if (const auto there = state.actor(actor)) step(ActorReleased{actor, there->requester, "done"});
  }
  void release_gang(GangId gang) {
    if (const auto there = state.gang(gang)) step(GangReleased{gang, there->requester, "done"});
  }

  /// The lease that answered the request; none if it is not granted or is gone.
  std::optional<LeaseGranted> lease_of(RequestId request) const {
    for (const auto& [id, lease] : leases) {
      if (lease.request == request) return lease;
    }
    return std::nullopt;
  }
  /// Of kind `What` among the effects since the last event of the test.
  template <class What>
  std::vector<What> seen() const {
    std::vector<What> found;
    for (const auto& effect : last) {
      if (const auto* one = std::get_if<What>(&effect)) found.push_back(*one);
    }
    return found;
  }
  std::string reason_of(RequestId request) const {
    for (const auto& view : state.pending()) {
      if (view.request == request) return view.reason;
    }
    return "not pending";
  }
  std::string refusal() const {
    const auto refused = seen<Refused>();
    return refused.empty() ? "not refused" : refused.front().reason;
  }
  NodeView node(NodeId id) const {
    for (const auto& view : state.nodes()) {
      if (view.node == id) return view;
    }
    return {};
  }
  bool is_idle() const {
    for (const auto& view : state.nodes()) {
      if (view.free != view.total) return false;
    }
    return state.pending().empty();
  }

 private:
  void forget_lease(LeaseId lease) {
    leases.erase(lease);
    recalled.erase(lease);
  }
  void note(const LeaseReturned& event) {
    const auto lease = leases.find(event.lease);
    if (lease != leases.end() && lease->second.requester == event.by) forget_lease(event.lease);
  }
  void note(const StartProcess& e) {
    starting.emplace(e.process, e);
    started.emplace(e.process, e);
  }
  void note(const StopProcess& e) {
    starting.erase(e.process);
    running.erase(e.process);
    const bool is_new = stopping.emplace(e.process, e).second;
    CHECK(is_new);
    // Leases, actors and ranks that ended with their requester are not told about one by one.
    std::erase_if(leases, [&](const auto& lease) { return lease.second.process == e.process; });
    std::erase_if(actors, [&](const auto& actor) { return actor.second.process == e.process; });
  }
  void note(const LeaseGranted& e) {
    if (!running.contains(e.process))
      FAIL_CHECK("a lease of process " << e.process << ", which does not run");
    leases.emplace(e.lease, e);
  }
  void note(const ActorPlaced& e) {
    CHECK(running.contains(e.process));
    actors.emplace(e.actor, e);
  }
  void note(const GangPlaced& e) {
    for (const auto& member : e.members) CHECK(running.contains(member.process));
    gangs.emplace(e.gang, e);
  }
  void note(const Refused& e) { CHECK(!e.reason.empty()); }
  void note(const LeaseRecalled& e) { CHECK(recalled.insert(e.lease).second); }
  void note(const LeaseLost& e) { forget_lease(e.lease); }
  void note(const ActorLost& e) { actors.erase(e.actor); }
  void note(const GangBroken&) {}
  void note(const ProcessResumed& e) { resumed.insert(e.process); }
  void note(const StillWaits& e) { CHECK(!e.reason.empty()); }

  std::size_t events_ = 0;
  NodeId last_node_;
  RequestId last_request_;
};

}  // namespace troupe::scheduler::test
