#include "transport/proof.hpp"

#include <string_view>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <troupe/errors.hpp>

namespace troupe::transport {
namespace {

/// Bytes to be authenticated: numbers of fixed width, strings with their length, so that no two inputs look alike.
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
  Material& nonce(const Bytes32& value) { return text({reinterpret_cast<const char*>(value.data()), value.size()}); }

  Bytes32 authenticated(const Secret& key) const {
    Bytes32 result{};
    unsigned size = result.size();
    if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
              reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), result.data(), &size)) {
      raise({.kind = Failure::Kind::Refused, .message = "OpenSSL cannot compute HMAC-SHA256 here"});
    }
    return result;
  }

 private:
  std::string bytes_;
};

}  // namespace

Secret job_key(const Secret& token, std::uint64_t job) {
  return Material("troupe job key").number(job).authenticated(token);
}

Bytes32 proof_of(Side side, const Secret& key, const Transcript& t) {
  return Material(side == Side::Server ? "troupe server" : "troupe caller")
      .number(t.protocol)
      .number(t.caller_min)
      .number(t.caller_max)
      .number(t.server_min)
      .number(t.server_max)
      .number(static_cast<std::uint64_t>(t.caller.role))
      .number(t.caller.job)
      .number(t.caller.process)
      .number(t.caller.subject)
      .text(t.caller.cluster)
      .text(t.cluster)
      .nonce(t.caller_nonce)
      .nonce(t.server_nonce)
      .authenticated(key);
}

bool equal(const Bytes32& proof, std::span<const unsigned char> claimed) {
  return claimed.size() == proof.size() && CRYPTO_memcmp(proof.data(), claimed.data(), proof.size()) == 0;
}

void warm_up() { (void)key_id({}); }

// From the kernel: OpenSSL's generator is seeded anew in every worker process, which takes longer than to start one.
Bytes32 fresh_nonce() {
  Bytes32 nonce{};
  if (::getentropy(nonce.data(), nonce.size()) != 0) {
    raise({.kind = Failure::Kind::Refused, .message = "this machine has no source of random bytes"});
  }
  return nonce;
}

std::string key_id(const Secret& key) {
  const auto digest = Material("troupe key id").authenticated(key);
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
}

}  // namespace troupe::transport
