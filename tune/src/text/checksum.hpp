#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::tune {

/// CRC-32C (RFC 3720, appendix B.4). Finds each change of up to 32 neighbouring bits, and of others all
/// but one in 2^32.
std::uint32_t crc32c(std::string_view data);

/// Of a line that with_checksum() made.
enum class Checksum : std::uint8_t { Right, Wrong, None };

/// `object`, a JSON object as text, with one more value behind its others: "crc", the CRC-32C of all
/// that comes before that value.
std::string with_checksum(std::string object);
Checksum look_at_checksum(std::string_view line);
/// The line up to its checksum, for who looks for its last value. The line has a checksum.
std::string_view before_checksum(std::string_view line);

}  // namespace troupe::tune
