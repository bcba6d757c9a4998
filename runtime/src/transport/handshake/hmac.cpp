// OpenSSL's SHA-256 by its functions of old: each step that EVP_MAC takes in front of them is one
// more page that a fresh worker process has to fault in; so would be OpenSSL's way of clearing
// memory.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "transport/handshake/hmac.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include <openssl/sha.h>

namespace troupe::transport {
namespace {

using Block = std::array<unsigned char, SHA256_CBLOCK>;
static_assert(std::tuple_size_v<Secret> <= SHA256_CBLOCK,
              "a longer key would have to be hashed first");

Bytes32 hash_after(const Secret& key, unsigned char pad, const void* bytes, std::size_t size) {
  Block block;
  block.fill(pad);
  std::ranges::transform(key, block, block.begin(), [](auto a, auto b) { return a ^ b; });
  SHA256_CTX hash;
  Bytes32 result;
  SHA256_Init(&hash);
  SHA256_Update(&hash, block.data(), block.size());
  SHA256_Update(&hash, bytes, size);
  SHA256_Final(result.data(), &hash);
  ::explicit_bzero(block.data(), block.size());
  ::explicit_bzero(&hash, sizeof hash);
  return result;
}

}  // namespace

Bytes32 hmac_sha256(const Secret& key, std::string_view bytes) {
  const auto inner = hash_after(key, 0x36, bytes.data(), bytes.size());
  return hash_after(key, 0x5c, inner.data(), inner.size());
}

}  // namespace troupe::transport
