#include "process/listeners.hpp"

#include <random>

#include <fmt/format.h>

namespace troupe::process {

Listeners open_listeners(transport::asio::io_context& loop, const std::string& host, Address& address,
                         const transport::Listener::OnSocket& on_socket) {
  std::random_device random;
  address.host = host;
  address.unix_name = fmt::format("troupe-{:08x}{:08x}", random(), random());
  Listeners open;
  open.tcp = transport::Listener::tcp(loop, host, 0, on_socket);
  open.local = transport::Listener::abstract_unix(loop, address.unix_name, on_socket);
  address.port = open.tcp->port();
  return open;
}

}  // namespace troupe::process
