#pragma once

#include <troupe/detail/core.hpp>
#include <troupe/errors.hpp>

#include "process/address.hpp"
#include "wire/message.capnp.h"

/// Values as they stand on the wire. Pure; reading throws kj::Exception on malformed input, which closes the connection.
namespace troupe::process {

AddressPtr read_address(wire::Address::Reader from);
void write_address(wire::Address::Builder to, const Address& address);

Failure read_failure(wire::Failure::Reader from);
void write_failure(wire::Failure::Builder to, const Failure& failure);

void write_request(wire::Request::Builder to, const detail::RequestOptions& options);

}  // namespace troupe::process
