#include "store/memory/checksum.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace troupe::store {

/// In checksum_avx2.cpp. It may be called only where the processor has AVX2.
std::uint64_t checksum_avx2(const void* bytes, std::size_t size);

std::uint64_t checksum(std::span<const std::byte> bytes) {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return checksum_avx2(bytes.data(), bytes.size());
#endif
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace troupe::store
