#include "transport/socket/endpoint.hpp"

#include <charconv>

#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::transport {

Endpoint parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  Endpoint endpoint;
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  if (colon != std::string::npos && colon > 0) {
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error == std::errc{} && stop == end && port > 0 && port < 65536)
      endpoint.port = static_cast<std::uint16_t>(port);
  }
  if (endpoint.port == 0)
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("'{}' is not an address: give HOST:PORT, for example "
                                  "10.0.0.5:7420, with a port from 1 to 65535",
                                  text)});
  endpoint.host = text.substr(0, colon);
  if (endpoint.host.front() == '[' && endpoint.host.back() == ']')
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  return endpoint;
}

}  // namespace troupe::transport
