#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <capnp/common.h>

namespace troupe::transfer {

/// What comes back on a connection on which a transferRequest was sent, in place of messages: one
/// after the other,
///
///     "TRPD" length(u32) offset(u64) checksum(u64), then `length` bytes of the object     a chunk
///     "TRP1" length(u32), then one Cap'n Proto segment                                     a message, as elsewhere
///
/// all little endian. Chunks follow each other without a gap, from the byte that was asked for to
/// the end; an object without bytes is one chunk without bytes. The checksum is XXH3 (64 bits) of a
/// chunk's bytes: it guards against what TCP's own sum lets through, and against memory that
/// changed while it was sent; not against who means harm.
inline constexpr std::uint32_t kChunkBytes = std::uint32_t{1} << 20;      ///< as they are sent
inline constexpr std::uint32_t kMostChunkBytes = std::uint32_t{4} << 20;  ///< as they are taken
inline constexpr std::size_t kChunkHeaderBytes = 24;
inline constexpr std::size_t kMostMessageBytes = 4096;

/// The header of a chunk of these bytes, which lie at `offset` of the object.
std::array<char, kChunkHeaderBytes> chunk_header(std::uint64_t offset,
                                                 std::span<const std::byte> bytes);

/// Takes such a stream apart. Pure: no socket, no clock. The bytes of a chunk are put where they
/// belong at once, and count only once their checksum was right.
///
///     [header] --TRPD, as it must follow--> [bytes] --checksum is right--> [header] ... --the last byte--> complete
///         |---TRP1--> [message] --> [header]   `--- it is not --> damaged
///         `---anything else--> garbage
class ChunkReader {
 public:
  /// `into`: the whole object. `from`: as many of its bytes are there. `warm`: its pages are
  /// mapped; else those of each chunk are asked for at once.
  ChunkReader(std::span<std::byte> into, std::uint64_t from, bool warm = false)
      : into_(into), warm_(warm), verified_(from) {}

  enum class Result { More, Chunk, Message, Garbage, Damaged };
  /// Where the next bytes go; not empty.
  std::span<std::byte> space();
  /// So many were put there. Chunk: there is a further one; see is_complete(). Message: see
  /// message(). After Garbage and Damaged the stream is of no more use; error() says why.
  Result filled(std::size_t bytes);

  bool is_complete() const { return complete_; }
  std::uint64_t verified() const { return verified_; }
  /// Until the next call of filled().
  std::span<const capnp::word> message() const {
    return {message_.data(), message_bytes_ / sizeof(capnp::word)};
  }
  const std::string& error() const { return error_; }

 private:
  enum class State { Header, Bytes, Message };
  Result header_filled();
  Result chunk_announced();
  Result chunk_filled();
  Result garbage(std::string why);

  std::span<std::byte> into_;
  bool warm_;
  std::uint64_t verified_;
  bool complete_ = false;
  State state_ = State::Header;
  std::array<std::byte, kChunkHeaderBytes> header_{};
  std::size_t filled_ = 0;  // of header, bytes or message
  std::uint32_t chunk_bytes_ = 0;
  std::uint64_t checksum_ = 0;
  std::vector<capnp::word> message_;
  std::size_t message_bytes_ = 0;
  std::string error_;
};

}  // namespace troupe::transfer
