#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/events.hpp>
#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/options.hpp>
#include <troupe/scheduler/snapshot.hpp>

namespace troupe::scheduler {

/// The cluster as a pure state machine: who is there, who has what, who waits for what and why.
/// Lives in the head, in tests and in simulators. No socket, thread, clock, file, random source:
/// same events at the same times, same effects. Used by one thread at a time.
///
/// A worker process (Options in brackets):
///
///   StartProcess --> [starting] --ProcessReady--> [in use: lease | actor | rank]
///                        |                           |                 ^
///                        | request withdrawn         | lease returned  | next lease, actor or rank of the job
///                        v                           v                 | (none of them with a GPU)
///                     [spare, goes idle when ready] [idle] ------------+
///                                                    | idle_time, idle_per_node, job ended
///   [in use] --actor, rank or GPU given back, requester gone--> [stopping] --ProcessExited--> gone
///   ProcessExited ends it in every state; what it held is free from then on, and not before.
///
/// A request:
///
///   asked --> [waiting] --resources taken--> [starting] --its processes are ready--> granted
///     |          |  ^                            |  |
///     |          |  +------- node lost ----------+  +--a process did not start--> refused
///     +----------+--impossible, limit, name taken--> refused
///   withdrawn, released, requester gone or job ended: dropped in both states, without an answer.
///
/// Order: by what the jobs have had, by dominant resource fairness, then by arrival, passing over
/// what does not fit now; of leases that came `together`, those first that an idle process can
/// serve. What waited longer than `patience`, or to which jobs that have had more are to give way,
/// has nodes drained for it: others are kept off what it needs there, and leases are recalled. So
/// nothing starves; and as a gang takes all it needs in one step or nothing, no two gangs hold
/// halves and wait for each other.
class State {
 public:
  explicit State(Options options = {});
  ~State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;

  /// `now` never goes back; an earlier one counts as the latest. Cost: O(log nodes) for a grant; a
  /// pass over the different shapes that wait where something became free.
  std::vector<Effect> apply(const Event& event, TimePoint now);
  /// The same, appended to `effects`, whose memory is used again where many events follow each
  /// other.
  void apply(const Event& event, TimePoint now, std::vector<Effect>& effects);

  /// For a driver, to be told in JobStarted. Never gives the same number twice.
  ProcessId new_process_id();

  /// In order of arrival.
  std::vector<PendingView> pending() const;
  std::vector<NodeView> nodes() const;
  std::vector<ActorView> actors() const;
  std::vector<GangView> gangs() const;
  std::vector<JobView> jobs() const;
  std::vector<ProcessView> processes() const;

  std::optional<ProcessView> process(ProcessId process) const;
  std::optional<ActorView> actor(ActorId actor) const;
  /// As a process of that job sees it. A name with a namespace before it ("shared/counter") is that
  /// of one actor in the cluster, another one of one actor in its job.
  std::optional<ActorView> actor_named(JobId job, std::string_view name) const;
  std::optional<GangView> gang(GangId gang) const;

  /// What is wrong with the state, if anything is: never, or there is a bug. Cost: a walk over
  /// everything.
  std::optional<std::string> broken_invariant() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::scheduler
