#pragma once

#include <memory>
#include <string>

#include "ids/address.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::runtime {

/// Where other processes of the job reach this one: an abstract unix socket, and TCP on `host` (any
/// free port). What could reach a loopback host is of this machine and takes the unix socket: then
/// there is no TCP.
struct Listeners {
  std::unique_ptr<transport::Listener> tcp;  // nullptr: none
  std::unique_ptr<transport::Listener> local;
};

/// Opens them and writes them into `address`. Throws Refused where the host is not an address of
/// this machine.
Listeners open_listeners(transport::asio::io_context& loop, const std::string& host,
                         Address& address, const transport::Listener::OnSocket& on_socket);

}  // namespace troupe::runtime
