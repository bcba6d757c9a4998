#pragma once

#include <string>

#include <troupe/detail/core.hpp>
#include <troupe/errors.hpp>

#include "ids/address.hpp"
#include "wire/message.capnp.h"

/// Values as they stand on the wire. Pure; reading throws kj::Exception on malformed input, which
/// closes the connection.
namespace troupe::runtime {

AddressPtr read_address(wire::Address::Reader from);
void write_address(wire::Address::Builder to, const Address& address);
/// Of the process that the head has granted.
AddressPtr read_grant(wire::ActorGrant::Reader from);

/// How a process ended whose node was lost; `what` is told in wire::NodeLost.
Failure lost_with_node(ProcessId process, const std::string& what);

Failure read_failure(wire::Failure::Reader from);
void write_failure(wire::Failure::Builder to, const Failure& failure);

void write_request(wire::Request::Builder to, const detail::RequestOptions& options);

}  // namespace troupe::runtime
