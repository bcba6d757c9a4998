#pragma once

#include <array>
#include <memory>
#include <string>
#include <variant>

namespace troupe::node {

using Digest = std::array<unsigned char, 32>;

/// SHA-256, piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, std::size_t size);
  Digest finish();  ///< once

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string to_hex(const Digest& digest);

struct ReadFailed {
  std::string why;
};
/// Of the whole file behind the descriptor. Cost: about 1 s for each GB.
std::variant<Digest, ReadFailed> digest_of(int file);

}  // namespace troupe::node
