#pragma once

#include <chrono>
#include <cstddef>

#include <troupe/scheduler/ids.hpp>

namespace troupe::scheduler {

/// Every limit and every patience of the scheduler.
struct Options {
  /// A worker process that nobody uses is stopped after this.
  Duration idle_time = std::chrono::seconds{10};
  /// Idle worker processes that a node may keep; 0: as many as it has CPUs, at least 2.
  std::size_t idle_per_node = 0;
  /// Requests for leases that arrive within this of each other count as come together: of those
  /// that a node has room for, the first is one whose job has an idle process there, which spares a
  /// start and a stop.
  Duration together = std::chrono::milliseconds{100};
  /// A lease older than this is recalled once somebody else waits for what it holds.
  Duration lease_term = std::chrono::seconds{1};
  /// What has waited longer than this has nodes drained for it, unless its requester has leases of
  /// its shape.
  Duration patience = std::chrono::seconds{2};
  /// Nodes are drained for a request for at most this long, then given free for as long, then
  /// drained for twice as long, and so on up to longest_reservation: what holds them may itself
  /// wait for work that only they could do.
  Duration reservation_term = std::chrono::seconds{10};
  Duration longest_reservation = std::chrono::minutes{10};
  /// Jobs are served by what they have had of the cluster over about this long; what was before is
  /// forgotten.
  Duration share_window = std::chrono::seconds{10};
  /// A job whose request waits this long, since it was asked for or since the job was last given one
  /// of that shape, is served before all jobs that came after the request, whatever it has had.
  Duration turn_patience = std::chrono::seconds{30};
  /// How many requests may have nodes drained for them at the same time.
  std::size_t reservations = 16;
  /// How long a request waits for a first node to join.
  Duration join_patience = std::chrono::seconds{10};
  /// How long after a node has left a request that could be met with it, and cannot without, waits
  /// for it to come back.
  Duration rejoin_patience = std::chrono::seconds{60};
  /// Nodes that have left and are waited for; of more, the latest.
  std::size_t departed_nodes = 1'000;
  /// A process that has what it waited for runs on after this long even where no CPU is free: it
  /// then owes its CPU, and is given the next one. Long-lived actors that took the CPU could
  /// otherwise keep it waiting for ever.
  Duration resume_patience = std::chrono::milliseconds{500};
  /// Processes with a lease per CPU of a node, at least one CPU counted: bounds chains of tasks
  /// that wait for tasks.
  std::size_t lease_processes_per_cpu = 64;
  /// Worker processes in use that asked for nothing, as actors do by default, per CPU of a node, at
  /// least one CPU counted: bounds a program that makes actors without end. Further ones wait.
  std::size_t light_processes_per_cpu = 8192;
  /// A lease that waits this long because of lease_processes_per_cpu alone is refused: the chain is
  /// deeper than that.
  Duration limit_patience = std::chrono::seconds{30};
  /// The driver is told of a request of its job that has waited this long, and why. That tasks
  /// stand in line behind tasks, and gangs behind gangs, is no news: they are told of only while
  /// the job has none at all, or where the gang is awaited.
  Duration notice_after = std::chrono::seconds{5};
  /// Between two notices to a driver about requests of one kind: tasks, actors or gangs.
  Duration notice_pause = std::chrono::minutes{10};
  /// Requests that may be pending at once; one more is refused.
  std::size_t pending_requests = 1'000'000;
  /// Ranks of one gang.
  std::size_t gang_size = 16'384;
};

}  // namespace troupe::scheduler
