#pragma once

#include <string>

#include <troupe/detail/core.hpp>
#include <troupe/errors.hpp>

#include "calls/execution_record.hpp"
#include "process/address.hpp"
#include "wire/message.capnp.h"

/// Values as they stand on the wire. Pure; reading throws kj::Exception on malformed input, which closes the connection.
namespace troupe::process {

AddressPtr read_address(wire::Address::Reader from);
void write_address(wire::Address::Builder to, const Address& address);

/// How a process ended whose node was lost; `what` is told in wire::NodeLost.
Failure lost_with_node(ProcessId process, const std::string& what);

Failure read_failure(wire::Failure::Reader from);
void write_failure(wire::Failure::Builder to, const Failure& failure);

/// How a process ended, as a tell says it; `failure` is the part of it that says why.
Death read_death(wire::Tell::Reader tell, wire::Failure::Reader failure);
void write_death(wire::Tell::Builder tell, wire::Failure::Builder failure, const Death& death);

void write_callers(wire::ProcessExited::Builder to, const ExecutionRecord::Report& report);
ExecutionRecord::Report read_callers(wire::ProcessExited::Reader from);

void write_request(wire::Request::Builder to, const detail::RequestOptions& options);

}  // namespace troupe::process
