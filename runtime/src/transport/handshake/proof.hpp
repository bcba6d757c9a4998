#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <capnp/blob.h>

#include "transport/handshake/handshake.hpp"

namespace troupe::transport {

using Bytes32 = std::array<unsigned char, 32>;

/// All that both sides must have seen alike. A message that was changed on its way, or repeated
/// from another handshake, makes the proofs differ.
struct Transcript {
  Caller caller;        // with the cluster as the caller asked for it
  std::string cluster;  // as the server answered
  std::uint16_t protocol = 0;
  std::uint16_t caller_min = 0, caller_max = 0, server_min = 0, server_max = 0;
  Bytes32 caller_nonce{}, server_nonce{};
};

/// HMAC-SHA256 (RFC 2104) over the transcript and the side, so that no side can send the other's
/// proof back.
enum class Side { Caller, Server };
Bytes32 proof_of(Side side, const Secret& key, const Transcript& transcript);
/// A nonce or a proof as it came.
inline std::span<const unsigned char> bytes_of(capnp::Data::Reader data) {
  return {data.begin(), data.size()};
}
/// In constant time.
bool equal(const Bytes32& proof, std::span<const unsigned char> claimed);

/// Of who has the token, for `holder` to be given it by its node: it says nothing of the token, and is
/// of use only to a process that a node has started. See node/token_request.hpp.
Bytes32 token_grant(const Secret& token, std::string_view holder);

/// Throws Refused where the machine has no randomness.
Bytes32 fresh_nonce();
/// Sixteen hexadecimal digits. Throws like fresh_nonce.
std::string random_name();
/// Eight hexadecimal digits that tell keys apart and do not give them away.
std::string key_id(const Secret& key);

}  // namespace troupe::transport
