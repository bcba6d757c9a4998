#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/need.hpp>

/// All that can happen to a cluster. Each is a value, and together with the time it was applied at
/// it is all that a replay needs: the same events at the same times make the same state and the
/// same effects. Nothing here is trusted: what names an unknown node, process, lease or request is
/// ignored or refused, never a crash. Each event says who speaks (the node with its incarnation, or
/// the process `by`), as whoever applies it knows from the connection, and not from the message.
/// What is not the speaker's is left as it is: such an event is ignored.
namespace troupe::scheduler {

/// A node with a newer incarnation takes the place of the older one, which is lost then. An older
/// one is ignored.
struct NodeJoined {
  NodeId node{};
  Incarnation incarnation{};
  std::string name;
  Resources total;         ///< "gpu" in it is replaced by `gpus`
  std::uint32_t gpus = 0;  ///< they are numbered 0..gpus-1
  Labels labels;
  Labels own_labels =
      /// It carries them too, and no other node ever will: once it has left they are not waited
      /// for.
      {};
};

/// All its processes are gone, or must be taken for gone.
struct NodeLost {
  NodeId node{};
  Incarnation incarnation{};  ///< ignored unless it is the current one
  std::string reason;
};

struct JobStarted {
  JobId job{};
  ProcessId driver{};  ///< from State::new_process_id()
  /// Its part of the cluster beside other jobs', above 0; else it counts as 1.
  double weight = 1;
  /// Whoever runs it calls no C++ API: StillWaits gives no advice about it.
  bool at_command_line = false;
};

/// Its processes are stopped, its requests dropped without an answer. ProcessExited of its driver
/// does the same.
struct JobEnded {
  JobId job{};
  std::string reason;
};

/// Answered by LeaseGranted or Refused.
struct LeaseAsked {
  RequestId request{};
  JobId job{};
  ProcessId requester{};  ///< a driver or worker process of the job; the lease ends with it
  Need need;
};

/// The holder will send no more tasks under it, and none runs.
struct LeaseReturned {
  LeaseId lease{};
  ProcessId by{};  ///< ignored unless it holds the lease
};

/// Answered by ActorPlaced or Refused. The actor shares the fate of its requester.
struct ActorAsked {
  RequestId request{};
  ActorId actor{};
  JobId job{};
  ProcessId requester{};
  Need need;
  /// From now until the actor is gone it is that of one actor in its job, or in the cluster where it
  /// has a namespace ("shared/counter"); empty: none.
  std::string name;
  std::string type;  ///< what it is, for people and for who finds it by its name
};

/// Its process is stopped, or its request dropped without an answer. No ActorLost follows.
struct ActorReleased {
  ActorId actor{};
  /// Ignored unless it is of the actor's job: all processes of a job may have handles.
  ProcessId by{};
  std::string why;
};

/// Answered by GangPlaced or Refused. The gang shares the fate of its requester.
struct GangAsked {
  RequestId request{};
  GangId gang{};
  JobId job{};
  ProcessId requester{};
  std::uint32_t size = 0;
  Need each;
  Strategy strategy = Strategy::Pack;
  bool awaited = false;  ///< whoever asks does nothing else meanwhile
};

/// Its processes are stopped, or its request dropped without an answer.
struct GangReleased {
  GangId gang{};
  ProcessId by{};  ///< ignored unless it asked for the gang
  std::string why;
};

/// A worker process has started and can be given work.
struct ProcessReady {
  ProcessId process{};
  NodeId node{};  ///< ignored unless it is the process's, in its current incarnation
  Incarnation incarnation{};
};

/// A worker process or a driver is gone, or could not be started.
struct ProcessExited {
  ProcessId process{};
  NodeId node{};  ///< as in ProcessReady; none for a driver
  Incarnation incarnation{};
  std::string cause;  ///< "killed by signal 9"
};

/// The user's code in it waits for a result, as it says itself: its CPU (and only that) may go to
/// others.
struct ProcessBlocked {
  ProcessId process{};
};

/// It has what it waited for, as it says itself. Answered by ProcessResumed, always, also where it
/// held no CPU.
struct ProcessUnblocked {
  ProcessId process{};
};

/// The actor in it has done what it asked for resources for, as it says itself, and lives on without
/// any: all that it holds is free at once. Ignored unless an actor is placed in it.
struct ResourcesReturned {
  ProcessId process{};
};

/// Others have refs of values that this worker process owns, or have none any more. While they
/// have, its end would be the end of what they wait for: it is not stopped for being idle.
struct ValuesHeld {
  ProcessId process{};
  bool any = false;
};

/// Nobody wants the answer any more. Ignored if it was given already: the lease, actor or gang must
/// then be given back.
struct RequestWithdrawn {
  RequestId request{};
  ProcessId by{};  ///< ignored unless it asked
};

/// Lets time pass: idle processes, terms of leases, patience. Several times a second is enough.
struct Tick {};

using Event = std::variant<NodeJoined, NodeLost, JobStarted, JobEnded, LeaseAsked, LeaseReturned,
                           ActorAsked, ActorReleased, GangAsked, GangReleased, ProcessReady,
                           ProcessExited, ProcessBlocked, ProcessUnblocked, ResourcesReturned,
                           ValuesHeld, RequestWithdrawn, Tick>;

/// For logs: "lease asked: request 3 of job 1, cpu 1".
std::string to_string(const Event& event);

}  // namespace troupe::scheduler
