#include "transport/proof.hpp"

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <unistd.h>

#include <troupe/errors.hpp>

namespace troupe::transport {
namespace {

struct FreeHmac {
  void operator()(EVP_MAC_CTX* hmac) const { EVP_MAC_CTX_free(hmac); }
};
using Hmac = std::unique_ptr<EVP_MAC_CTX, FreeHmac>;

/// Kept from one proof to the next: OpenSSL looks its methods up by name, which costs more than the proof itself.
std::atomic<EVP_MAC_CTX*> spare_hmac{nullptr};

Hmac make_hmac() {
  EVP_MAC* method = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  Hmac hmac(method != nullptr ? EVP_MAC_CTX_new(method) : nullptr);
  EVP_MAC_free(method);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  return hmac && EVP_MAC_CTX_set_params(hmac.get(), parameters) ? std::move(hmac) : nullptr;
}

Hmac take_hmac() {
  Hmac spare(spare_hmac.exchange(nullptr, std::memory_order_acquire));
  return spare ? std::move(spare) : make_hmac();
}

void give_back(Hmac hmac) {
  hmac.reset(spare_hmac.exchange(hmac.release(), std::memory_order_acq_rel));  // another thread's may be there
}

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
    std::size_t size = 0;
    auto hmac = take_hmac();
    if (!hmac || !EVP_MAC_init(hmac.get(), key.data(), key.size(), nullptr) ||
        !EVP_MAC_update(hmac.get(), reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size()) ||
        !EVP_MAC_final(hmac.get(), result.data(), &size, result.size()) || size != result.size()) {
      raise({.kind = Failure::Kind::Refused, .message = "OpenSSL cannot compute HMAC-SHA256 here"});
    }
    give_back(std::move(hmac));
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

// From the kernel: OpenSSL's generator is seeded anew in every worker process, which takes longer than to start one.
Bytes32 fresh_nonce() {
  Bytes32 nonce{};
  if (::getentropy(nonce.data(), nonce.size()) != 0) {
    raise({.kind = Failure::Kind::Refused, .message = "this machine has no source of random bytes"});
  }
  return nonce;
}

std::string random_name() {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto random = fresh_nonce();
  std::string name;
  for (std::size_t i = 0; i < 8; ++i) {
    name += digits[random[i] >> 4];
    name += digits[random[i] & 15];
  }
  return name;
}

std::string key_id(const Secret& key) {
  const auto digest = Material("troupe key id").authenticated(key);
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
}

}  // namespace troupe::transport
