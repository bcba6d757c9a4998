#pragma once

#include <fmt/core.h>

#include <troupe/scheduler/ids.hpp>

namespace troupe::runtime {

// The scheduler's, so that what the head hands on from it is what everybody else has.
using scheduler::ActorId;
using scheduler::GangId;
using scheduler::JobId;
using scheduler::LeaseId;
using scheduler::NodeId;
using scheduler::ProcessId;

/// Of what a process asks of the head, made by the process and unique in it; none: nobody waits for
/// an answer, or what the head says is no answer.
using HeadRequestId = scheduler::StrongId<struct HeadRequestTag>;

}  // namespace troupe::runtime

/// Ids in texts; as in the scheduler's id_format.hpp, which nobody else may include.
template <class Tag, class Number>
struct fmt::formatter<troupe::scheduler::StrongId<Tag, Number>>
    : troupe::scheduler::IdFormatter<troupe::scheduler::StrongId<Tag, Number>,
                                     fmt::formatter<Number>> {};
