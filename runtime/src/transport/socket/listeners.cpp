#include "transport/socket/listeners.hpp"

#include "transport/handshake/proof.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::runtime {

Listeners open_listeners(transport::asio::io_context& loop, const std::string& host,
                         Address& address, const transport::Listener::OnSocket& on_socket) {
  address.host = host;
  address.unix_name = "troupe-" + transport::random_name();
  Listeners open;
  open.local = transport::Listener::abstract_unix(loop, address.unix_name, on_socket);
  if (transport::is_loopback(host)) return open;
  open.tcp = transport::Listener::tcp(loop, host, 0, on_socket);
  address.port = open.tcp->port();
  return open;
}

}  // namespace troupe::runtime
