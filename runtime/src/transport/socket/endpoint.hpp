#pragma once

#include <cstdint>
#include <string>

namespace troupe::transport {

/// Where to connect to.
struct Endpoint {
  std::string host = {};  ///< TCP, name or number; empty: unix
  std::uint16_t port = 0;
  std::string unix_name = {};  ///< abstract
};

/// "HOST:PORT" or "[V6]:PORT". Throws Refused with what is wrong with it.
Endpoint parse_endpoint(const std::string& text);

}  // namespace troupe::transport
