#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::store {

/// XXH3 (64 bits) of the bytes, with the widest vectors that this machine has. Any thread.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace troupe::store
