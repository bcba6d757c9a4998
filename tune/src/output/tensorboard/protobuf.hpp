#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::tune {

/// A message in the wire format of Protocol Buffers, field by field. A field that a reader is to
/// find unset is left out. A value.
class ProtoMessage {
 public:
  /// Int64, uint64, bool and enumerations.
  ProtoMessage& number(std::uint32_t field, std::int64_t value);
  ProtoMessage& real(std::uint32_t field, double value);
  ProtoMessage& real32(std::uint32_t field, float value);
  /// What is not UTF-8 is replaced: a reader refuses a whole message for it.
  ProtoMessage& text(std::uint32_t field, std::string_view value);
  ProtoMessage& bytes(std::uint32_t field, std::string_view value);
  ProtoMessage& message(std::uint32_t field, const ProtoMessage& value);

  const std::string& encoded() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void tag(std::uint32_t field, std::uint32_t wire_type);

  std::string bytes_;
};

/// `value` in as many bytes as it has, the lowest first.
template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return bytes;
}

}  // namespace troupe::tune
