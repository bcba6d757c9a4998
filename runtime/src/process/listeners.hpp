#pragma once

#include <memory>
#include <string>

#include "process/address.hpp"
#include "transport/handshake.hpp"

namespace troupe::process {

/// Where other processes of the job reach this one: TCP on `host` (any free port) and an abstract unix socket.
struct Listeners {
  std::unique_ptr<transport::Listener> tcp;
  std::unique_ptr<transport::Listener> local;
};

/// Opens both and writes them into `address`. Throws Refused where the host is not an address of this machine.
Listeners open_listeners(transport::asio::io_context& loop, const std::string& host, Address& address,
                         const transport::Listener::OnSocket& on_socket);

}  // namespace troupe::process
