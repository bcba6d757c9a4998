#pragma once

#include "calls/deaths/death.hpp"
#include "calls/execution_record.hpp"
#include "wire/message.capnp.h"

/// How a process ended, how far it had come with the calls of others, and the replies that it had not
/// got rid of, as they stand on the wire.
namespace troupe::runtime {

/// How a process ended, as a tell says it; `failure` is the part of it that says why.
Death read_death(wire::HeadNotice::Reader tell, wire::Failure::Reader failure);
void write_death(wire::HeadNotice::Builder tell, wire::Failure::Builder failure,
                 const Death& death);

void write_callers(wire::ProcessExited::Builder to, const ExecutionRecord::Report& report);
ExecutionRecord::Report read_callers(wire::ProcessExited::Reader from);

}  // namespace troupe::runtime
