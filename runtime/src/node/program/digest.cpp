#include "node/program/digest.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <openssl/evp.h>
#include <unistd.h>

namespace troupe::node {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

namespace {
void must(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL cannot compute SHA-256");
}
}  // namespace

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  must(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, std::size_t size) {
  must(EVP_DigestUpdate(context_->evp, data, size));
}

Digest Sha256::finish() {
  Digest digest;
  must(EVP_DigestFinal_ex(context_->evp, digest.data(), nullptr));
  return digest;
}

std::string to_hex(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::variant<Digest, ReadFailed> digest_of(int file) {
  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 20);
  for (off_t offset = 0;;) {
    const auto got = ::pread(file, buffer.data(), buffer.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadFailed{std::strerror(errno)};
    if (got == 0) return hash.finish();
    hash.update(buffer.data(), static_cast<std::size_t>(got));
    offset += got;
  }
}

}  // namespace troupe::node
