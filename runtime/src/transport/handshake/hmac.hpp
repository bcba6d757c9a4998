#pragma once

#include <string_view>

#include "transport/handshake/proof.hpp"

namespace troupe::transport {

/// HMAC-SHA256 (RFC 2104). Any thread.
Bytes32 hmac_sha256(const Secret& key, std::string_view bytes);

}  // namespace troupe::transport
