#include "transport/handshake/hmac.hpp"

#include <algorithm>
#include <random>
#include <string>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <catch2/catch.hpp>

namespace troupe::transport {
namespace {

Bytes32 reference(const Secret& key, const std::string& bytes) {
  Bytes32 result{};
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), result.data(),
         nullptr);
  return result;
}

}  // namespace

TEST_CASE("HMAC-SHA256 gives what RFC 4231 says", "[transport][proof]") {
  Secret key{};  // shorter keys are filled with zeros
  std::fill_n(key.begin(), 20, static_cast<unsigned char>(0x0b));
  const Bytes32 expected{0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf,
                         0xce, 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83,
                         0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7};
  CHECK(hmac_sha256(key, "Hi There") == expected);
}

TEST_CASE("HMAC-SHA256 gives what OpenSSL's own does, for every length around its blocks",
          "[transport][proof]") {
  constexpr unsigned kSeed = 7;
  INFO("seed " << kSeed);
  std::mt19937 random(kSeed);
  for (std::size_t size = 0; size < 200; ++size) {
    Secret key;
    std::ranges::generate(key, [&] { return static_cast<unsigned char>(random()); });
    std::string bytes(size, '\0');
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    CHECK(hmac_sha256(key, bytes) == reference(key, bytes));
  }
}

}  // namespace troupe::transport
