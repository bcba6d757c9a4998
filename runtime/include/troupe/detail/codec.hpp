#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <troupe/detail/containers.hpp>
#include <troupe/detail/names.hpp>

namespace troupe::detail {

/// The value as bytes and refs. Throws std::length_error if it nests too deep, and what a user's own `save` throws.
template <class T>
Payload encode(const T& value) {
  Payload payload;
  if constexpr (packed<T>) {
    payload.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    payload.bytes = value;
  } else {
    OutArchive archive(payload);
    archive(value);
  }
  return payload;
}

[[noreturn]] inline void refuse_bytes(std::string_view type, std::string_view why) {
  throw DecodeError("these bytes are no " + std::string(type) + ": " + std::string(why));
}

/// The value that was encoded. Throws DecodeError, naming the type, if the payload is not exactly one T.
template <class T>
T decode(const Payload& payload) {
  T value{};
  if constexpr (packed<T>) {
    if (payload.bytes.size() != sizeof value) refuse_bytes(type_name<T>, "they have another length");
    std::memcpy(&value, payload.bytes.data(), sizeof value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = payload.bytes;
  } else {
    InArchive archive(payload);
    try {
      archive(value);
    } catch (const Error&) {
      throw;  // of a handle inside: the bytes are good
    } catch (const std::exception& error) {
      refuse_bytes(type_name<T>, error.what());
    }
    if (archive.remaining() != 0) refuse_bytes(type_name<T>, "something follows it");
  }
  return value;
}

}  // namespace troupe::detail
