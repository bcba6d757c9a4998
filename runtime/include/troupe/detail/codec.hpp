#pragma once

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <troupe/detail/containers.hpp>
#include <troupe/detail/names.hpp>

namespace troupe::detail {

/// Bytes whose number is known.
inline void encode_bytes(Payload& into, const void* bytes, std::size_t size, Owner owner) {
  if (size >= kStoredBytes) {
    if (const auto room = store_room(size, owner)) {
      std::memcpy(room->bytes().data(), bytes, size);
      into.stored = room->seal();
      return;
    }
  }
  into.bytes.assign(static_cast<const char*>(bytes), size);
}

/// A value is written to where it will lie, without a copy between: a large one is counted first,
/// then written.
template <class T>
void encode_archive(Payload& into, const T& value, Owner owner) {
  OutArchive archive(into,
                     has_store() ? kStoredBytes - 1 : std::numeric_limits<std::size_t>::max());
  archive(value);
  if (archive.complete()) return;
  into = {};
  if (const auto room = store_room(archive.size(), owner)) {
    OutArchive writer(into, room->bytes());
    writer(value);
    if (!writer.complete()) OutArchive::changed();
    into.stored = room->seal();
  } else {
    OutArchive all(into);
    all(value);
  }
}

/// The value as bytes and refs. Throws std::length_error if it nests too deep, what a user's own
/// `save` throws, and for a large value what store_room does. A user's `save` may be called twice.
template <class T>
Payload encode(const T& value, Owner owner = Owner::Self) {
  Payload payload;
  if constexpr (packed<T>) {
    if constexpr (sizeof value < kStoredBytes) {
      payload.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      encode_bytes(payload, &value, sizeof value, owner);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    encode_bytes(payload, value.data(), value.size(), owner);
  } else {
    encode_archive(payload, value, owner);
  }
  return payload;
}

[[noreturn]] inline void refuse_bytes(std::string_view type, std::string_view why) {
  throw DecodeError("these bytes are no " + std::string(type) + ": " + std::string(why) +
                    "; if another program sent them, compile both from one definition of it");
}

/// The value that was encoded. Throws DecodeError, naming the type, if the payload is not exactly
/// one T.
template <class T>
T decode(const Payload& payload) {
  T value{};
  if constexpr (packed<T>) {
    const auto block = block_of(payload);
    if (block.bytes.size() != sizeof value) refuse_bytes(type_name<T>, "they have another length");
    std::memcpy(&value, block.bytes.data(), sizeof value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = block_of(payload).bytes;
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
