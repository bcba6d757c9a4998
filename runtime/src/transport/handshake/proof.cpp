#include "transport/handshake/proof.hpp"

#include <string_view>

#include <openssl/crypto.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "transport/handshake/hmac.hpp"

namespace troupe::transport {
namespace {

/// Bytes to be authenticated: numbers of fixed width, strings with their length, so that no two
/// inputs look alike.
class Material {
 public:
  explicit Material(std::string_view purpose) { text(purpose); }
  Material& number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
    return *this;
  }
  Material& text(std::string_view value) {
    number(value.size());
    bytes_ += value;
    return *this;
  }
  Material& nonce(const Bytes32& value) {
    return text({reinterpret_cast<const char*>(value.data()), value.size()});
  }

  Bytes32 authenticated(const Secret& key) const { return hmac_sha256(key, bytes_); }

 private:
  std::string bytes_;
};

std::string hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

Secret job_key(const Secret& token, runtime::JobId job) {
  return Material("troupe job key").number(job.value()).authenticated(token);
}

Bytes32 proof_of(Side side, const Secret& key, const Transcript& t) {
  return Material(side == Side::Server ? "troupe server" : "troupe caller")
      .number(t.protocol)
      .number(t.caller_min)
      .number(t.caller_max)
      .number(t.server_min)
      .number(t.server_max)
      .number(static_cast<std::uint64_t>(t.caller.role))
      .number(t.caller.job.value())
      .number(t.caller.process.value())
      .number(t.caller.subject.value())
      .text(t.caller.cluster)
      .text(t.cluster)
      .nonce(t.caller_nonce)
      .nonce(t.server_nonce)
      .authenticated(key);
}

bool equal(const Bytes32& proof, std::span<const unsigned char> claimed) {
  return claimed.size() == proof.size() &&
         CRYPTO_memcmp(proof.data(), claimed.data(), proof.size()) == 0;
}

Bytes32 token_grant(const Secret& token, std::string_view holder) {
  return Material("troupe token grant").text(holder).authenticated(token);
}

// From the kernel: OpenSSL's generator is seeded anew in every worker process, which takes longer
// than to start one.
Bytes32 fresh_nonce() {
  Bytes32 nonce{};
  if (::getentropy(nonce.data(), nonce.size()) != 0) {
    raise(
        {.kind = Failure::Kind::Refused, .message = "this machine has no source of random bytes"});
  }
  return nonce;
}

std::string random_name() {
  const auto random = fresh_nonce();
  return hex({random.data(), 8});
}

std::string key_id(const Secret& key) {
  const auto digest = Material("troupe key id").authenticated(key);
  return hex({digest.data(), 4});
}

}  // namespace troupe::transport
