#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/scheduler/strong_id.hpp>

namespace troupe::scheduler {

/// Of a machine's agent, for as long as the cluster lives.
using NodeId = StrongId<struct NodeTag, std::uint32_t>;
using Incarnation =
    StrongId<struct IncarnationTag>;  ///< of one life of a node: grows with each join
using JobId = StrongId<struct JobTag>;
/// Drivers and worker processes alike; made by the State; never used twice.
using ProcessId = StrongId<struct ProcessTag>;
using LeaseId = StrongId<struct LeaseTag>;  ///< made by the State; never used twice
using ActorId = StrongId<struct ActorTag>;  ///< made by who asks; unique in the cluster
using GangId = StrongId<struct GangTag>;    ///< made by who asks; unique in the cluster
/// Made by who applies the events; unique while the request is pending.
using RequestId = StrongId<struct RequestTag>;
using Rank = std::uint32_t;      ///< of a process in its gang
using GpuIndex = std::uint32_t;  ///< of a GPU on its node

/// Time since any epoch, as long as it is always the same one. The state machine has no clock of
/// its own.
using TimePoint = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

}  // namespace troupe::scheduler
