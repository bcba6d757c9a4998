#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <troupe/scheduler/ids.hpp>

/// What the world is told to do, or told to know, after an event; to be carried out in the order
/// given.
namespace troupe::scheduler {

/// Answered by ProcessReady or ProcessExited.
struct StartProcess {
  ProcessId process{};
  NodeId node{};
  Incarnation incarnation{};
  JobId job{};
  /// All it may see; a gang's rank sees those of its gang on its node, in rank order.
  std::vector<GpuIndex> gpus;
  /// That libraries may use in it: one for each whole CPU of all that it will ever be given, at
  /// least one.
  std::uint32_t threads = 1;
};

/// Answered by ProcessExited. What the process held stays taken until then.
struct StopProcess {
  ProcessId process{};
  NodeId node{};
  Incarnation incarnation{};
  std::string why;
};

struct LeaseGranted {
  RequestId request{};
  ProcessId requester{};
  LeaseId lease{};
  ProcessId process{};
};

struct ActorPlaced {
  RequestId request{};
  ProcessId requester{};
  ActorId actor{};
  ProcessId process{};
  std::string type;
};

struct Member {
  ProcessId process{};
  NodeId node{};
  std::vector<GpuIndex> gpus;    ///< its own, a part of what it sees
  std::uint32_t local_rank = 0;  ///< among the gang's ranks on its node
  std::uint32_t node_rank = 0;   ///< of its node among the gang's nodes
  friend bool operator==(const Member&, const Member&) = default;
};

struct GangPlaced {
  RequestId request{};
  ProcessId requester{};
  GangId gang{};
  std::vector<Member> members;  ///< by rank; the ranks of one node follow each other
};

struct Refused {
  enum class Kind : unsigned char {
    Impossible,  ///< no node, or not all nodes together, could ever hold it
    Failed,      ///< its process did not start, or who asks is not there
    NameTaken,   ///< another actor has the name
    Limit,       ///< a limit of Options; the reason names it
  };
  RequestId request{};
  ProcessId requester{};
  Kind kind = Kind::Impossible;
  std::string reason;
  /// Of a Failed one: the process that did not start; none: it is something else.
  ProcessId failed{};
  /// Where its name is taken: the actor that has it.
  ActorId holder{};
};

/// Finish the running task, then return the lease. Said once per lease.
struct LeaseRecalled {
  LeaseId lease{};
  ProcessId requester{};
};

struct LeaseLost {
  LeaseId lease{};
  ProcessId process{};
  std::string cause;
  ProcessId requester{};
};

/// A placed actor has died, or is stopped because its creator is gone.
struct ActorLost {
  ActorId actor{};
  ProcessId process{};
  std::string cause;
  ProcessId requester{};
};

/// A rank of a placed gang has died; the other ranks run on until the gang is released. Said once
/// per dead rank.
struct GangBroken {
  GangId gang{};
  std::uint32_t rank = 0;
  ProcessId process{};
  std::string cause;
  ProcessId requester{};
  std::vector<ProcessId> others;  ///< the ranks that live, by rank
};

/// Its user code may go on.
struct ProcessResumed {
  ProcessId process{};
};

/// For people: a request of the job has waited for long, and nothing that the job does by itself
/// may end that. Said at most once in `notice_pause` of a job.
struct StillWaits {
  JobId job{};
  ProcessId driver{};
  std::string what;  ///< as in PendingView
  Duration waited{};
  std::string reason;
};

using Effect =
    std::variant<StartProcess, StopProcess, LeaseGranted, ActorPlaced, GangPlaced, Refused,
                 LeaseRecalled, LeaseLost, ActorLost, GangBroken, ProcessResumed, StillWaits>;

/// For logs: "start process 7 on node 2 for job 1".
std::string to_string(const Effect& effect);

}  // namespace troupe::scheduler
