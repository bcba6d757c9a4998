#include "output/tensorboard/protobuf.hpp"

#include <bit>

#include "text/json.hpp"

namespace troupe::tune {
namespace {

// https://protobuf.dev/programming-guides/encoding/
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kLengthDelimited = 2;
constexpr std::uint32_t kFixed32 = 5;

}  // namespace

void ProtoMessage::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(static_cast<unsigned char>(value | 0x80));
    value >>= 7;
  }
  bytes_ += static_cast<char>(static_cast<unsigned char>(value));
}

void ProtoMessage::tag(std::uint32_t field, std::uint32_t wire_type) {
  varint(std::uint64_t{field} << 3 | wire_type);
}

ProtoMessage& ProtoMessage::number(std::uint32_t field, std::int64_t value) {
  tag(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(std::uint32_t field, double value) {
  tag(field, kFixed64);
  bytes_ += little_endian(std::bit_cast<std::uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real32(std::uint32_t field, float value) {
  tag(field, kFixed32);
  bytes_ += little_endian(std::bit_cast<std::uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::text(std::uint32_t field, std::string_view value) {
  return bytes(field, parse(dump(Json(value)), "a text").get<std::string>());
}

ProtoMessage& ProtoMessage::bytes(std::uint32_t field, std::string_view value) {
  tag(field, kLengthDelimited);
  varint(value.size());
  bytes_ += value;
  return *this;
}

ProtoMessage& ProtoMessage::message(std::uint32_t field, const ProtoMessage& value) {
  return bytes(field, value.encoded());
}

}  // namespace troupe::tune
