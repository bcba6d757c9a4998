#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::scheduler {

/// Of a machine's agent, for as long as the cluster lives; 0 is never one.
using NodeId = std::uint32_t;
using Incarnation = std::uint64_t;  ///< of one life of a node: grows with every join
using JobId = std::uint64_t;
/// Drivers and worker processes alike; made by the State; never used twice.
using ProcessId = std::uint64_t;
using LeaseId = std::uint64_t;  ///< made by the State; never used twice
using ActorId = std::uint64_t;  ///< made by who asks; unique in the cluster
using GangId = std::uint64_t;   ///< made by who asks; unique in the cluster
/// Made by who applies the events; unique while the request is pending.
using RequestId = std::uint64_t;
using Rank = std::uint32_t;      ///< of a process in its gang
using GpuIndex = std::uint32_t;  ///< of a GPU on its node

/// Time since any epoch, as long as it is always the same one. The state machine has no clock of
/// its own.
using TimePoint = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

}  // namespace troupe::scheduler
